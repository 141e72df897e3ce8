package io.herdkeeper.node.digest;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

class RowDigestTest {

    private record Row(byte[] key, byte[] value) {
    }

    /** The vectors are Python's, of the xxhash package; the Spark jobs check the same file. */
    @TestFactory
    Stream<DynamicTest> givesWhatPythonGives() throws Exception {
        JsonNode file = new ObjectMapper().readTree(RowDigestTest.class.getResource("/row-digest-vectors.json"));
        return StreamSupport.stream(file.get("vectors").spliterator(), false)
                .map(vector -> DynamicTest.dynamicTest(vector.get("name").asText(), () -> {
                    List<Row> rows = rows(vector);
                    RowDigest digest = digest(rows);
                    assertEquals(vector.get("digest").asText(), digest.hex());
                    assertEquals(rows.size(), digest.rows());
                }));
    }

    @Test
    void theOrderOfRowsDoesNotMatter() {
        Random random = new Random(7);
        List<Row> rows = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            byte[] key = new byte[1 + random.nextInt(20)];
            byte[] value = new byte[random.nextInt(400)];
            random.nextBytes(key);
            random.nextBytes(value);
            rows.add(new Row(key, value));
        }
        String ordered = digest(rows).hex();
        Collections.shuffle(rows, random);
        assertEquals(ordered, digest(rows).hex());
    }

    private static RowDigest digest(List<Row> rows) {
        RowDigest digest = new RowDigest();
        rows.forEach(row -> digest.add(ByteBuffer.wrap(row.key), ByteBuffer.wrap(row.value)));
        return digest;
    }

    private static List<Row> rows(JsonNode vector) {
        HexFormat hex = HexFormat.of();
        return StreamSupport.stream(vector.get("rows").spliterator(), false)
                .map(row -> new Row(hex.parseHex(row.get("key").asText()), hex.parseHex(row.get("value").asText())))
                .toList();
    }
}

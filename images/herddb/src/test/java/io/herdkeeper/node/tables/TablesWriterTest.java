package io.herdkeeper.node.tables;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

class TablesWriterTest {

    /** The stream is Python's; the Spark jobs check the same file. */
    @Test
    void writesWhatTheJobsRead() throws Exception {
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        TablesWriter writer = new TablesWriter(stream);
        byte[] golden = HexFormat.of().parseHex(
                new String(TablesWriterTest.class.getResourceAsStream("/tables-stream.hex").readAllBytes(), StandardCharsets.US_ASCII).strip());
        StreamedTables expected = StreamedTables.read(new ByteArrayInputStream(golden));

        writer.position(12, 345, "0ab");
        writer.table(1, expected.tables().get(0).definition());
        writer.endTable();
        writer.table(7, expected.tables().get(1).definition());
        for (byte[] index : expected.tables().get(1).indexes()) {
            writer.index(index[0] == 1, Arrays.copyOfRange(index, 1, index.length));
        }
        writer.row(bytes("key1"), bytes("value"));
        writer.row(bytes("key2"), bytes(""));
        writer.row(bytes("k"), ByteBuffer.wrap(new byte[300]));
        writer.endTable();
        writer.end();
        assertEquals(HexFormat.of().formatHex(golden), HexFormat.of().formatHex(stream.toByteArray()));
    }

    @Test
    void manyRowsAndLargeOnesComeInFramesOfTheirOwn() throws Exception {
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        TablesWriter writer = new TablesWriter(stream);
        writer.position(1, 2, "0ab");
        writer.table(1, new byte[0]);
        for (int i = 0; i < 40_000; i++) {
            writer.row(bytes("k" + i), bytes("v"));
        }
        for (int i = 0; i < 4; i++) {
            writer.row(bytes("large" + i), ByteBuffer.wrap(new byte[3 << 20]));
        }
        writer.endTable();
        writer.end();
        StreamedTables.StreamedTable table = StreamedTables.read(new ByteArrayInputStream(stream.toByteArray())).tables().get(0);
        assertEquals(40_004, table.rows().rows());
        assertEquals(table.counted(), "40004 " + table.rows().hex());
    }

    private static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII));
    }
}

package io.herdkeeper.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.Test;

class PackagesTest {

    /** Of one package to another whose classes are this program's, too; some have the name of a package of HerdDB. */
    private static final Pattern DEPENDENCY = Pattern.compile("^\\s+([\\w.]+)\\s+-> ([\\w.]+)\\s+classes\\s*$", Pattern.MULTILINE);

    @Test
    void noPackageNeedsOneThatNeedsIt() throws URISyntaxException {
        Map<String, Set<String>> needed = dependencies();
        assertTrue(needed.keySet().containsAll(Set.of("io.herdkeeper.node.log", "herddb.model.planner")), needed.toString());
        Set<String> free = new TreeSet<>();
        do {
            free.clear();
            needed.forEach((name, others) -> {
                if (others.stream().noneMatch(needed::containsKey)) {
                    free.add(name);
                }
            });
            needed.keySet().removeAll(free);
        } while (!free.isEmpty());
        assertEquals(Map.of(), needed, "these packages need one another in a circle, or one that does");
    }

    /** Of each package that needs others of this program, those; as jdeps reads them from the compiled classes. */
    private static Map<String, Set<String>> dependencies() throws URISyntaxException {
        Path classes = Path.of(NodeServer.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        StringWriter written = new StringWriter();
        PrintWriter out = new PrintWriter(written);
        ToolProvider.findFirst("jdeps").orElseThrow()
                .run(out, out, "-verbose:package", "-filter:none", "--ignore-missing-deps", "--multi-release", "17", classes.toString());
        Map<String, Set<String>> needed = new TreeMap<>();
        Matcher found = DEPENDENCY.matcher(written.toString());
        while (found.find()) {
            if (!found.group(1).equals(found.group(2))) {
                needed.computeIfAbsent(found.group(1), any -> new TreeSet<>()).add(found.group(2));
            }
        }
        return needed;
    }
}

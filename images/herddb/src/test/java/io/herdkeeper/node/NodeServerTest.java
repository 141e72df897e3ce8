package io.herdkeeper.node;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class NodeServerTest {

    /** Classes that no thread has used yet, as in a new process. */
    private static final class UnusedClasses extends URLClassLoader {

        UnusedClasses() throws MalformedURLException {
            super(classPath(), ClassLoader.getPlatformClassLoader());
        }

        boolean isLoaded(String name) {
            return findLoadedClass(name) != null;
        }

        private static URL[] classPath() throws MalformedURLException {
            List<URL> entries = new ArrayList<>();
            for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
                entries.add(Path.of(entry).toUri().toURL());
            }
            return entries.toArray(URL[]::new);
        }
    }

    @Test
    void twoClassesThatInitializeEachOtherAreInitializedBeforeSeveralThreadsUseThem() throws Exception {
        try (UnusedClasses unused = new UnusedClasses()) {
            Class.forName(NodeServer.class.getName(), true, unused);
            // the class of DataAccessor.NULL: its creation initializes AbstractDataAccessor within the initialization of DataAccessor
            assertTrue(unused.isLoaded("herddb.utils.DataAccessor$1"));
        }
    }
}

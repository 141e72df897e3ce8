package io.herdkeeper.node.nemesis;

import java.io.IOException;
import java.net.URI;
import java.nio.channels.FileChannel;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.AccessMode;
import java.nio.file.CopyOption;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileStore;
import java.nio.file.FileSystem;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.FileAttributeView;
import java.nio.file.spi.FileSystemProvider;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A folder as one process of a node sees it: each step on it is a call of that process, and what was not forced to the disk before the
 * power cut is torn.
 *
 * <p>HerdDB comes to its files through {@link Path}s alone, so that a path of this file system is enough.
 */
final class Disk extends FileSystemProvider {

    private final Life life;
    private final DiskFileSystem files = new DiskFileSystem(this);
    /** The files whose content is not on the disk yet, with how much of them is. */
    private final Map<Path, Long> unforced = new HashMap<>();

    Disk(Life life) {
        this.life = life;
        life.onKill(this::tear);
    }

    /** A folder of the machine's own file system, seen so. */
    Path seen(Path real) {
        return new DiskPath(files, real);
    }

    private static Path real(Path path) {
        return ((DiskPath) path).real();
    }

    private synchronized void tear() {
        unforced.forEach((file, forced) -> {
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                channel.truncate(forced + (channel.size() - forced) / 2);
            } catch (IOException gone) {
                // then it is lost as a whole
            }
        });
    }

    synchronized void written(Path file) {
        unforced.putIfAbsent(file, 0L);
    }

    synchronized void forced(Path file) {
        unforced.remove(file);
    }

    private synchronized void moved(Path from, Path to) {
        unforced.remove(to);
        Long forced = unforced.remove(from);
        if (forced != null) {
            unforced.put(to, forced);
        }
    }

    /** A step on a file: made, or failed as a broken disk fails it. */
    <T> T step(String what, Path file, boolean changes, Life.Effect<T, IOException> effect) throws IOException {
        Life.Visit visit = life.begin(new Call(Kind.DISK, what + " " + Caller.plain(file.getFileName().toString()) + " by " + Caller.of(), changes));
        if (visit.fails()) {
            throw new IOException("the disk is broken: " + what + " " + file);
        }
        T result = visit.effect(effect);
        visit.isLost();
        return result;
    }

    /** A step that is no point: what it does is not on the disk before the next one is. */
    <T> T idle(Life.Effect<T, IOException> effect) throws IOException {
        return life.idle(effect);
    }

    @Override
    public FileChannel newFileChannel(Path path, Set<? extends OpenOption> options, FileAttribute<?>... attributes) throws IOException {
        Path file = real(path);
        boolean writes = options.contains(StandardOpenOption.WRITE);
        return step(writes ? "open" : "read", file, writes, () -> {
            if (writes) {
                written(file);
            }
            return new DiskChannel(this, file, FileChannel.open(file, options, attributes));
        });
    }

    @Override
    public SeekableByteChannel newByteChannel(Path path, Set<? extends OpenOption> options, FileAttribute<?>... attributes) throws IOException {
        return newFileChannel(path, options, attributes);
    }

    @Override
    public DirectoryStream<Path> newDirectoryStream(Path path, DirectoryStream.Filter<? super Path> filter) throws IOException {
        List<Path> found = new ArrayList<>();
        step("list", real(path), false, () -> {
            try (DirectoryStream<Path> stream = Files.newDirectoryStream(real(path))) {
                for (Path each : stream) {
                    Path seen = seen(each);
                    if (filter.accept(seen)) {
                        found.add(seen);
                    }
                }
            }
            return null;
        });
        found.sort(Path::compareTo);
        return new DirectoryStream<>() {
            @Override
            public Iterator<Path> iterator() {
                return found.iterator();
            }

            @Override
            public void close() {
                // nothing is open
            }
        };
    }

    @Override
    public void createDirectory(Path path, FileAttribute<?>... attributes) throws IOException {
        if (idle(() -> Files.exists(real(path)))) {
            throw new FileAlreadyExistsException(path.toString());
        }
        step("make folder", real(path), true, () -> Files.createDirectory(real(path), attributes));
    }

    @Override
    public void delete(Path path) throws IOException {
        step("delete", real(path), true, () -> {
            Files.delete(real(path));
            forced(real(path));
            return null;
        });
    }

    @Override
    public boolean deleteIfExists(Path path) throws IOException {
        return step("delete", real(path), true, () -> {
            forced(real(path));
            return Files.deleteIfExists(real(path));
        });
    }

    @Override
    public void move(Path source, Path target, CopyOption... options) throws IOException {
        step("move", real(target), true, () -> {
            Files.move(real(source), real(target), options);
            moved(real(source), real(target));
            return null;
        });
    }

    @Override
    public void copy(Path source, Path target, CopyOption... options) throws IOException {
        step("copy", real(target), true, () -> {
            Files.copy(real(source), real(target), options);
            return null;
        });
    }

    @Override
    public boolean isSameFile(Path path, Path other) throws IOException {
        return real(path).equals(real(other));
    }

    @Override
    public boolean isHidden(Path path) {
        return false;
    }

    @Override
    public FileStore getFileStore(Path path) throws IOException {
        return Files.getFileStore(real(path));
    }

    @Override
    public void checkAccess(Path path, AccessMode... modes) throws IOException {
        idle(() -> {
            real(path).getFileSystem().provider().checkAccess(real(path), modes);
            return null;
        });
    }

    @Override
    public <V extends FileAttributeView> V getFileAttributeView(Path path, Class<V> type, LinkOption... options) {
        return Files.getFileAttributeView(real(path), type, options);
    }

    @Override
    public <A extends BasicFileAttributes> A readAttributes(Path path, Class<A> type, LinkOption... options) throws IOException {
        return idle(() -> Files.readAttributes(real(path), type, options));
    }

    @Override
    public Map<String, Object> readAttributes(Path path, String attributes, LinkOption... options) throws IOException {
        return idle(() -> Files.readAttributes(real(path), attributes, options));
    }

    @Override
    public void setAttribute(Path path, String attribute, Object value, LinkOption... options) throws IOException {
        Files.setAttribute(real(path), attribute, value, options);
    }

    @Override
    public String getScheme() {
        return "nemesis";
    }

    @Override
    public FileSystem newFileSystem(URI uri, Map<String, ?> environment) {
        throw new UnsupportedOperationException();
    }

    @Override
    public FileSystem getFileSystem(URI uri) {
        return files;
    }

    @Override
    public Path getPath(URI uri) {
        throw new UnsupportedOperationException();
    }
}

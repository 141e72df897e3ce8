package io.herdkeeper.node.nemesis;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.file.FileSystem;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.WatchEvent;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;

/** A path of the machine's own file system, whose file is reached through a {@link Disk}. */
record DiskPath(DiskFileSystem files, Path real) implements Path {

    private Path of(Path other) {
        return other == null ? null : new DiskPath(files, other);
    }

    private static Path plain(Path other) {
        return other instanceof DiskPath own ? own.real : other;
    }

    @Override
    public FileSystem getFileSystem() {
        return files;
    }

    @Override
    public boolean isAbsolute() {
        return real.isAbsolute();
    }

    @Override
    public Path getRoot() {
        return of(real.getRoot());
    }

    @Override
    public Path getFileName() {
        return of(real.getFileName());
    }

    @Override
    public Path getParent() {
        return of(real.getParent());
    }

    @Override
    public int getNameCount() {
        return real.getNameCount();
    }

    @Override
    public Path getName(int index) {
        return of(real.getName(index));
    }

    @Override
    public Path subpath(int begin, int end) {
        return of(real.subpath(begin, end));
    }

    @Override
    public boolean startsWith(Path other) {
        return real.startsWith(plain(other));
    }

    @Override
    public boolean endsWith(Path other) {
        return real.endsWith(plain(other));
    }

    @Override
    public Path normalize() {
        return of(real.normalize());
    }

    @Override
    public Path resolve(Path other) {
        return of(real.resolve(plain(other)));
    }

    @Override
    public Path relativize(Path other) {
        return of(real.relativize(plain(other)));
    }

    @Override
    public URI toUri() {
        return real.toUri();
    }

    @Override
    public Path toAbsolutePath() {
        return of(real.toAbsolutePath());
    }

    @Override
    public Path toRealPath(LinkOption... options) throws IOException {
        return of(real.toRealPath(options));
    }

    /** HerdDB reads small files so; what is only read may be reached beside the nemesis. */
    @Override
    public File toFile() {
        return real.toFile();
    }

    @Override
    public WatchKey register(WatchService watcher, WatchEvent.Kind<?>[] events, WatchEvent.Modifier... modifiers) {
        throw new UnsupportedOperationException();
    }

    @Override
    public int compareTo(Path other) {
        return real.compareTo(plain(other));
    }

    @Override
    public String toString() {
        return real.toString();
    }
}

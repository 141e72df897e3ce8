package io.herdkeeper.node.nemesis;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;
import java.nio.file.Path;

/** An open file of a {@link Disk}. */
final class DiskChannel extends FileChannel {

    private final Disk disk;
    private final Path file;
    private final FileChannel real;

    DiskChannel(Disk disk, Path file, FileChannel real) {
        this.disk = disk;
        this.file = file;
        this.real = real;
    }

    /** The disk of the tests need not spin: what counts is what was forced before the power cut. */
    @Override
    public void force(boolean metadata) throws IOException {
        disk.step("force", file, true, () -> {
            disk.forced(file);
            return null;
        });
    }

    @Override
    public int write(ByteBuffer source) throws IOException {
        return disk.idle(() -> {
            disk.written(file);
            return real.write(source);
        });
    }

    @Override
    public long write(ByteBuffer[] sources, int offset, int length) throws IOException {
        return disk.idle(() -> {
            disk.written(file);
            return real.write(sources, offset, length);
        });
    }

    @Override
    public int write(ByteBuffer source, long position) throws IOException {
        return disk.idle(() -> {
            disk.written(file);
            return real.write(source, position);
        });
    }

    @Override
    public int read(ByteBuffer target) throws IOException {
        return disk.idle(() -> real.read(target));
    }

    @Override
    public long read(ByteBuffer[] targets, int offset, int length) throws IOException {
        return disk.idle(() -> real.read(targets, offset, length));
    }

    @Override
    public int read(ByteBuffer target, long position) throws IOException {
        return disk.idle(() -> real.read(target, position));
    }

    @Override
    public long position() throws IOException {
        return real.position();
    }

    @Override
    public FileChannel position(long position) throws IOException {
        real.position(position);
        return this;
    }

    @Override
    public long size() throws IOException {
        return real.size();
    }

    @Override
    public FileChannel truncate(long size) throws IOException {
        return disk.idle(() -> {
            real.truncate(size);
            return this;
        });
    }

    @Override
    public long transferTo(long position, long count, WritableByteChannel target) throws IOException {
        return disk.idle(() -> real.transferTo(position, count, target));
    }

    @Override
    public long transferFrom(ReadableByteChannel source, long position, long count) throws IOException {
        return disk.idle(() -> real.transferFrom(source, position, count));
    }

    @Override
    public MappedByteBuffer map(MapMode mode, long position, long size) {
        throw new UnsupportedOperationException("a mapped file would be written beside the nemesis");
    }

    @Override
    public FileLock lock(long position, long size, boolean shared) {
        throw new UnsupportedOperationException();
    }

    @Override
    public FileLock tryLock(long position, long size, boolean shared) {
        throw new UnsupportedOperationException();
    }

    @Override
    protected void implCloseChannel() throws IOException {
        real.close();
    }
}

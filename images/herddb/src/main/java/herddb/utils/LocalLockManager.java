package herddb.utils;

import herddb.model.StatementExecutionException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.StampedLock;
import java.util.function.Supplier;

/**
 * The locks of a table's rows, or of a unique index's values, instead of HerdDB's class of this name.
 *
 * <p>HerdDB forgets some locks of an UPDATE or DELETE that it refuses, and may release one by another index. So each lock is released once,
 * whoever is asked to, and {@link #letGoOnFailure} releases those that were forgotten.
 */
public final class LocalLockManager implements ILocalLockManager {

    /** What the statement of this thread has locked. */
    private static final ThreadLocal<List<LockHandle>> OF_STATEMENT = new ThreadLocal<>();

    private final ConcurrentMap<Bytes, Lock> locks = new ConcurrentHashMap<>();
    private int writeLockTimeout = 60 * 30;
    private int readLockTimeout = 60 * 30;

    /** Of one key. It is forgotten once nobody has it or waits for it. */
    private static final class Lock {

        private final StampedLock stamps = new StampedLock();
        private int users;
        /** What the statement has locked that has it for itself; null where nobody knows. */
        private volatile List<LockHandle> writer;
    }

    private record Held(LocalLockManager manager, Lock lock, AtomicBoolean released) {
    }

    /** Executes a statement outside of transactions, and releases what it has still locked if it fails or throws. */
    public static <R> CompletableFuture<R> letGoOnFailure(Supplier<CompletableFuture<R>> statement) {
        List<LockHandle> outer = OF_STATEMENT.get();
        List<LockHandle> own = new ArrayList<>();
        OF_STATEMENT.set(own);
        try {
            return statement.get().whenComplete((done, error) -> {
                if (error != null) {
                    own.forEach(LocalLockManager::release);
                }
            });
        } catch (RuntimeException | Error error) {
            own.forEach(LocalLockManager::release);
            throw error;
        } finally {
            OF_STATEMENT.set(outer);
        }
    }

    public void setWriteLockTimeout(int seconds) {
        writeLockTimeout = seconds;
    }

    public void setReadLockTimeout(int seconds) {
        readLockTimeout = seconds;
    }

    @Override
    public LockHandle acquireWriteLockForKey(Bytes key) {
        return acquire(key, true, writeLockTimeout);
    }

    @Override
    public LockHandle acquireReadLockForKey(Bytes key) {
        return acquire(key, false, readLockTimeout);
    }

    private LockHandle acquire(Bytes key, boolean write, int seconds) {
        List<LockHandle> statement = OF_STATEMENT.get();
        Lock lock = locks.compute(key, (same, known) -> {
            Lock used = known == null ? new Lock() : known;
            used.users++;
            return used;
        });
        long stamp = 0;
        try {
            if (statement != null && statement == lock.writer) {
                throw new StatementExecutionException("the statement would give one value of a unique index to two rows");
            }
            stamp = write ? lock.stamps.tryWriteLock(seconds, TimeUnit.SECONDS) : lock.stamps.tryReadLock(seconds, TimeUnit.SECONDS);
            if (stamp == 0) {
                throw new LockAcquireTimeoutException("timed out acquiring lock for " + (write ? "write" : "read"));
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new LockAcquireTimeoutException(error);
        } finally {
            if (stamp == 0) {
                leave(key, lock);
            }
        }
        LockHandle handle = new LockHandle(stamp, key, write, new Held(this, lock, new AtomicBoolean()));
        if (statement != null) {
            statement.add(handle);
            lock.writer = write ? statement : null;
        }
        return handle;
    }

    private void leave(Bytes key, Lock lock) {
        locks.computeIfPresent(key, (same, known) -> known == lock && --lock.users == 0 ? null : known);
    }

    @Override
    public void releaseWriteLock(LockHandle handle) {
        release(handle);
    }

    @Override
    public void releaseReadLock(LockHandle handle) {
        release(handle);
    }

    @Override
    public void releaseLock(LockHandle handle) {
        if (handle != null) {
            release(handle);
        }
    }

    private static void release(LockHandle handle) {
        Held held = (Held) handle.handle;
        if (!held.released.compareAndSet(false, true)) {
            return;
        }
        if (handle.write) {
            held.lock.writer = null;
            held.lock.stamps.unlockWrite(handle.stamp);
        } else {
            held.lock.stamps.unlockRead(handle.stamp);
        }
        held.manager.leave(handle.key, held.lock);
    }

    @Override
    public void clear() {
        locks.clear();
    }

    @Override
    public int getNumKeys() {
        return locks.size();
    }
}

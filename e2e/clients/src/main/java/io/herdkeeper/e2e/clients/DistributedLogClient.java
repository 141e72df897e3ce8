package io.herdkeeper.e2e.clients;

import java.io.IOException;
import java.net.URI;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.distributedlog.DLSN;
import org.apache.distributedlog.DistributedLogConfiguration;
import org.apache.distributedlog.LogRecord;
import org.apache.distributedlog.LogRecordWithDLSN;
import org.apache.distributedlog.api.AsyncLogWriter;
import org.apache.distributedlog.api.DistributedLogManager;
import org.apache.distributedlog.api.LogReader;
import org.apache.distributedlog.api.namespace.Namespace;
import org.apache.distributedlog.api.namespace.NamespaceBuilder;
import org.apache.distributedlog.bk.LedgerMetadata;
import org.apache.distributedlog.impl.metadata.BKDLConfig;
import org.apache.distributedlog.metadata.DLMetadata;

/**
 * A stream of DistributedLog on the same bookies:
 * {@code DistributedLogClient ZOOKEEPER LEDGERS_ROOT NAMESPACE_PATH NAME SEGMENT_BYTES PAUSE_MILLISECONDS}.
 *
 * <p>ZOOKEEPER is a connection string, {@code host:port,host:port}. The namespace is bound to the ledgers' root as {@code dlog admin bind}
 * does it: its znode names ensemble and root. Quorums are DistributedLog's own (E = Wq = 3, Aq = 2). Log segments, each of them a ledger, are
 * rolled by size.
 */
public final class DistributedLogClient implements Log {

    private static final int MOST_UNANSWERED = 16;
    private static final long TRIED_AGAIN_AFTER_MILLISECONDS = 200;
    private static final long ASKED_AGAIN_AFTER_MILLISECONDS = 20;
    /** Records don't know the segment, and so the ledger, that they will be in. */
    private static final long LOG = 0;

    private final DistributedLogConfiguration configuration = new DistributedLogConfiguration();
    private final URI uri;
    private final Namespace namespace;
    private final DistributedLogManager stream;
    private final String name;
    private final long pause;

    private DistributedLogClient(String[] arguments) throws IOException {
        this.uri = namespaceUri(arguments[0], arguments[2]);
        this.name = arguments[3];
        this.pause = Long.parseLong(arguments[5]);
        new DLMetadata("BKDL", new BKDLConfig(arguments[0], arguments[1])).create(uri);
        // each record at once: while a segment is rolled, a record that waits in a buffer for others would wait for ever
        configuration.setOutputBufferSize(0);
        configuration.setImmediateFlushEnabled(true);
        configuration.setLogSegmentRollingIntervalMinutes(0);
        configuration.setMaxLogSegmentBytes(Integer.parseInt(arguments[4]));
        configuration.setExplicitTruncationByApplication(true);
        this.namespace = open();
        this.stream = namespace.openLog(name);
    }

    public static void main(String[] arguments) {
        Program.run(() -> new DistributedLogClient(arguments));
    }

    /** Hosts are separated by semicolons there, since a comma is none of a URI's authority with ports. */
    static URI namespaceUri(String zookeeper, String path) {
        return URI.create("distributedlog://" + zookeeper.replace(',', ';') + path);
    }

    private Namespace open() throws IOException {
        return NamespaceBuilder.newBuilder().conf(configuration).uri(uri).clientId(name).build();
    }

    @Override
    public void write(Written written, Until stop) throws Exception {
        while (!stop.over()) {
            try {
                AsyncLogWriter writer = openWriter();
                boolean whole = fill(writer, written, stop);
                (whole ? writer.asyncClose() : writer.asyncAbort()).get();
            } catch (ExecutionException noWriter) {
                System.out.println("the stream can't be written: " + noWriter.getCause());
                stop.pause(TRIED_AGAIN_AFTER_MILLISECONDS);
            }
        }
    }

    private AsyncLogWriter openWriter() throws ExecutionException, InterruptedException {
        LedgerMetadata whose = new LedgerMetadata();
        whose.setApplication("herdkeeper-e2e");
        whose.setComponent(name);
        return stream.openAsyncLogWriter(whose).get();
    }

    /** Returns when all that it tried was answered: whether all of it was acknowledged. */
    private boolean fill(AsyncLogWriter writer, Written written, Until stop) throws InterruptedException {
        Semaphore unanswered = new Semaphore(MOST_UNANSWERED);
        AtomicBoolean failed = new AtomicBoolean();
        while (!failed.get() && !stop.over()) {
            unanswered.acquire();
            long sequence = written.attempt();
            // transaction ids begin at 1
            writer.write(new LogRecord(sequence + 1, Content.of(LOG, sequence))).whenComplete((position, error) -> {
                if (error == null) {
                    written.acknowledged(sequence);
                } else if (!failed.getAndSet(true)) {
                    System.out.println("the writer is opened anew: " + error);
                }
                unanswered.release();
            });
            stop.pause(pause);
        }
        unanswered.acquire(MOST_UNANSWERED);
        return !failed.get();
    }

    @Override
    public void tail(Received received, Until over) throws Exception {
        read(stream, received, over);
    }

    @Override
    public void readBack(Received received, Until over) throws Exception {
        try (Namespace fresh = open(); DistributedLogManager log = fresh.openLog(name)) {
            read(log, received, over);
        }
    }

    private static void read(DistributedLogManager log, Received received, Until over) throws Exception {
        DLSN last = DLSN.InitialDLSN;
        boolean began = false;
        while (!over.over()) {
            try (LogReader reader = log.openLogReader(last)) {
                while (!over.over()) {
                    LogRecordWithDLSN record = reader.readNext(true);
                    if (record == null) {
                        over.pause(ASKED_AGAIN_AFTER_MILLISECONDS);
                    } else if (!began || record.getDlsn().compareTo(last) > 0) {
                        began = true;
                        last = record.getDlsn();
                        received.next(record.getPayload(), LOG, last.toString());
                    }
                }
            } catch (IOException tryAgain) {
                System.out.println("the stream could not be read after " + last + ": " + tryAgain);
                over.pause(TRIED_AGAIN_AFTER_MILLISECONDS);
            }
        }
    }

    @Override
    public void close() {
        stream.asyncClose();
        namespace.close();
    }
}

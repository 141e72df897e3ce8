package io.herdkeeper.node.users;

import herddb.proto.Pdu;
import herddb.utils.ByteBufUtils;
import io.herdkeeper.node.refusals.Refusals;
import io.herdkeeper.node.refusals.Refusals.Reason;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.ByteToMessageDecoder;
import java.util.List;
import java.util.function.BooleanSupplier;

/**
 * Looks at what a connection sends until it is logged in. Whole requests, as short as a login, are allowed; for anything else the
 * connection is ended.
 *
 * <p>HerdDB believes each length that it reads, of anybody. It keeps a message of up to 2 GB in memory until that is whole. For a login it
 * makes room of the announced size, so a few bytes would end the process for lack of memory. An answer to nothing it never frees.
 *
 * <p>What a connection sends short of a whole request is kept in direct memory, which BookKeeper's client needs. So a request is short, and
 * only so many connections are waited for ({@link Strangers}).
 */
public final class BeforeLogin extends ByteToMessageDecoder {

    /** A login has some hundred bytes. */
    private static final int MOST_BYTES = 1 << 14;
    /** Version, flags, type, and the message's number. */
    private static final int HEADER_BYTES = 1 + 1 + 1 + Long.BYTES;

    private final BooleanSupplier loggedIn;
    private final Strangers strangers;
    private volatile ChannelHandlerContext own;

    public BeforeLogin(BooleanSupplier loggedIn, Strangers strangers) {
        this.loggedIn = loggedIn;
        this.strangers = strangers;
    }

    boolean isLoggedIn() {
        return loggedIn.getAsBoolean();
    }

    /** Makes room for another connection. */
    void makeRoom() {
        Refusals.tell(Reason.TOO_MANY, own.channel().remoteAddress(), "too many SQL connections wait for a login");
        own.close();
    }

    @Override
    public void handlerAdded(ChannelHandlerContext connection) {
        own = connection;
        strangers.enter(this);
    }

    /** Also when the connection ends. */
    @Override
    protected void handlerRemoved0(ChannelHandlerContext connection) {
        strangers.leave(this);
    }

    @Override
    protected void decode(ChannelHandlerContext connection, ByteBuf received, List<Object> passed) {
        if (isLoggedIn()) {
            connection.pipeline().remove(this);
            return;
        }
        if (received.readableBytes() < Integer.BYTES) {
            return;
        }
        int length = received.getInt(received.readerIndex());
        if (length < HEADER_BYTES || length > MOST_BYTES) {
            hangUp(connection, received);
        } else if (received.readableBytes() >= Integer.BYTES + length) {
            if (isWholeRequest(received.slice(received.readerIndex() + Integer.BYTES, length))) {
                passed.add(received.readRetainedSlice(Integer.BYTES + length));
            } else {
                hangUp(connection, received);
            }
        }
    }

    private static void hangUp(ChannelHandlerContext connection, ByteBuf received) {
        Refusals.tell(Reason.REQUEST, connection.channel().remoteAddress(), "something else than a login was sent to the SQL port");
        received.skipBytes(received.readableBytes());
        connection.close();
    }

    /** Of another request than a login HerdDB reads no more than the header. */
    private static boolean isWholeRequest(ByteBuf message) {
        message.skipBytes(1);
        byte flags = message.readByte();
        byte type = message.readByte();
        message.skipBytes(Long.BYTES);
        if ((flags & Pdu.FLAGS_ISREQUEST) == 0) {
            return false;
        }
        return switch (type) {
            case Pdu.TYPE_SASL_TOKEN_MESSAGE_REQUEST -> skipsArray(message) && skipsArray(message);
            case Pdu.TYPE_SASL_TOKEN_MESSAGE_TOKEN -> message.isReadable() && (message.readByte() == 0 || skipsArray(message));
            default -> true;
        };
    }

    private static boolean skipsArray(ByteBuf message) {
        try {
            message.skipBytes(ByteBufUtils.readVInt(message));
            return true;
        } catch (IndexOutOfBoundsException | IllegalArgumentException tooShort) {
            return false;
        }
    }
}

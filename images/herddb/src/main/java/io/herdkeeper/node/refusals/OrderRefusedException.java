package io.herdkeeper.node.refusals;

/** This node can't follow an order, now or with this replica; the message says why. */
public final class OrderRefusedException extends Exception {

    private static final long serialVersionUID = 1L;

    public OrderRefusedException(String message) {
        super(message);
    }
}

package io.herdkeeper.node.users;

/** A users file or login that can't be used. The message names the file and the fault, and contains no password. */
public final class UnusableUsersException extends Exception {

    private static final long serialVersionUID = 1L;

    UnusableUsersException(String message) {
        super(message);
    }
}

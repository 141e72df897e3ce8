package io.herdkeeper.node.users;

/** What can't say who may log in; the message names the file and what is wrong with it, and tells no password. */
public final class UnusableUsersException extends Exception {

    private static final long serialVersionUID = 1L;

    UnusableUsersException(String message) {
        super(message);
    }
}

package io.herdkeeper.node.contact;

/**
 * Whether somebody answers, and for how long that has been so.
 *
 * @param answers whether there was an answer a moment ago
 * @param seconds since when there are answers without a break, or since when there is none
 */
public record Period(boolean answers, double seconds) {
}

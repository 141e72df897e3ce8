package io.herdkeeper.node.nemesis;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** One run: a story, and what happens in it. Written as {@code leader change; n1 zk … #1 before: KILL; …}. */
public record Case(String story, List<Strike> strikes) {

    private static final String SEPARATOR = "; ";

    /**
     * Reads what {@link #toString} wrote.
     *
     * @throws IllegalArgumentException when it is none
     */
    public static Case parse(String text) {
        List<String> parts = Arrays.asList(text.split(SEPARATOR));
        List<Strike> strikes = new ArrayList<>();
        for (String part : parts.subList(1, parts.size())) {
            int colon = part.lastIndexOf(": ");
            if (colon < 0) {
                throw new IllegalArgumentException("CASE: '" + part + "' is no point with a fault: write POINT: FAULT");
            }
            strikes.add(new Strike(part.substring(0, colon), Fault.valueOf(part.substring(colon + 2).trim())));
        }
        return new Case(parts.get(0), strikes);
    }

    Case with(Strike another) {
        List<Strike> both = new ArrayList<>(strikes);
        both.add(another);
        return new Case(story, both);
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder(story);
        strikes.forEach(strike -> text.append(SEPARATOR).append(strike));
        return text.toString();
    }
}

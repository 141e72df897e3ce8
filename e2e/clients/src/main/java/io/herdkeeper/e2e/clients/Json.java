package io.herdkeeper.e2e.clients;

/**
 * JSON texts, as far as reports need them.
 */
final class Json {

    private Json() {
    }

    /** A text, or null, as JSON. */
    static String text(String value) {
        if (value == null) {
            return "null";
        }
        StringBuilder escaped = new StringBuilder("\"");
        for (char each : value.toCharArray()) {
            if (each == '"' || each == '\\') {
                escaped.append('\\').append(each);
            } else if (each < ' ') {
                escaped.append(String.format("\\u%04x", (int) each));
            } else {
                escaped.append(each);
            }
        }
        return escaped.append('"').toString();
    }
}

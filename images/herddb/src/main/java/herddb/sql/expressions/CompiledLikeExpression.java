package herddb.sql.expressions;

import herddb.model.ColumnTypes;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;
import java.util.Arrays;

/**
 * LIKE, instead of HerdDB's class of this name. For that one NULL is not like anything, so NOT LIKE is true of it. It also ignores ESCAPE
 * where the pattern is a parameter, or the column is a key. It reads an escaped escape as nothing, and what is between {@code \E} and {@code \Q}
 * as a regular expression. Where a pattern has many {@code %}, it goes back and forth in a text for ever, and holds the tablespace meanwhile.
 * A long pattern overflows its stack, which ends the leader's log.
 */
public final class CompiledLikeExpression extends CompiledBinarySQLExpression {

    private static final int ANYTHING = -1;
    private static final int ONE = -2;
    /** How often each sign of a text is looked at, on average. A long part behind {@code %} that nearly fits everywhere needs more. */
    private static final long LOOKS = 1_000;

    private final char escape;
    /** Null where the pattern is no constant. */
    private final int[] pattern;

    public CompiledLikeExpression(CompiledSQLExpression left, CompiledSQLExpression right) {
        this(left, right, '\\');
    }

    public CompiledLikeExpression(CompiledSQLExpression left, CompiledSQLExpression right, CompiledSQLExpression escape) {
        this(left, right, escape.cast(ColumnTypes.STRING).evaluate(DataAccessor.NULL, null).toString().charAt(0));
    }

    private CompiledLikeExpression(CompiledSQLExpression left, CompiledSQLExpression right, char escape) {
        super(left, right);
        this.escape = escape;
        this.pattern = right instanceof ConstantExpression constant && !constant.isNull()
                ? signs(constant.getValue().toString(), escape) : null;
    }

    private static int[] signs(String like, char escape) {
        int[] signs = new int[like.length()];
        int count = 0;
        for (int i = 0; i < like.length(); i++) {
            char sign = like.charAt(i);
            if (sign != escape) {
                signs[count++] = sign == '%' ? ANYTHING : sign == '_' ? ONE : sign;
            } else if (++i < like.length()) {
                signs[count++] = like.charAt(i); // is itself
            }
        }
        return Arrays.copyOf(signs, count);
    }

    /** Each part between two {@code %} is found as early as it can be, and never again; the last one ends the text. */
    private static boolean isLike(String text, int[] signs) {
        long looks = LOOKS * (text.length() + signs.length);
        int at = 0;
        int sign = 0;
        int part = -1; // of the signs, behind the last %
        int from = 0;  // in the text, where that part is looked for
        while (at < text.length()) {
            if (--looks < 0) {
                throw new StatementExecutionException("a pattern of LIKE has a part of some thousand characters behind a %, which nearly fits at"
                        + " too many places of a text: shorten it");
            }
            if (sign < signs.length && signs[sign] == ANYTHING) {
                part = ++sign;
                from = at;
            } else if (sign < signs.length && (signs[sign] == ONE || signs[sign] == text.charAt(at))) {
                at += signs[sign++] == ONE ? Character.charCount(text.codePointAt(at)) : 1;
            } else if (part >= 0) {
                sign = part;
                at = ++from;
            } else {
                return false;
            }
        }
        while (sign < signs.length && signs[sign] == ANYTHING) {
            sign++;
        }
        return sign == signs.length;
    }

    @Override
    public Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException {
        Object text = left.evaluate(row, context);
        Object like = right.evaluate(row, context);
        if (text == null || like == null) {
            return null;
        }
        return isLike(text.toString(), pattern != null ? pattern : signs(like.toString(), escape));
    }

    @Override
    public CompiledSQLExpression remapPositionalAccessToToPrimaryKeyAccessor(int[] projection) {
        return new CompiledLikeExpression(left.remapPositionalAccessToToPrimaryKeyAccessor(projection),
                right.remapPositionalAccessToToPrimaryKeyAccessor(projection), escape);
    }
}

package herddb.sql.expressions;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.model.ColumnTypes;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CompiledLikeExpressionTest {

    private static final int LONG = 100_000;

    @ParameterizedTest
    @CsvSource({"abc,abc,true", "abc,ab,false", "abc,a%,true", "abc,%c,true", "abc,%b%,true", "abc,%d%,false", "abc,a_c,true", "abc,a_,false",
        "abcb,%b,true", "abcabd,%ab_,true", "abab,ab%ab,true", "aba,ab%ba,false", "axbxc,a%x%c,true", "abc,%%%,true", "a.c,a.c,true", "abc,a.c,false",
        "a%c,a\\%c,true", "abc,a\\%c,false", "a_c,a\\_c,true", "a\\c,a\\\\c,true", "a\\bc,a\\\\%,true", "abc,abc\\,true",
        "\uD83D\uDE00b,_b,true", "\uD83D\uDE00,%\uD83D\uDE00%,true"})
    void aTextIsLikeItsPattern(String text, String like, boolean is) {
        assertEquals(is, isLike(text, like, '\\'));
    }

    @ParameterizedTest
    @CsvSource({"ab,\\E.*\\Q,false", "\\E,\\E,true", "x\\Ey,x\\E%,true", "a!b,a!!b,true", "a%b,a!%b,true", "axb,a!%b,false"})
    void anotherEscapeMakesNoRegularExpression(String text, String like, boolean is) {
        assertEquals(is, isLike(text, like, '!'));
    }

    @Test
    @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aPatternOfManyPartsIsComparedOnce() {
        assertEquals(false, isLike("a".repeat(2000), "%a".repeat(12) + "%b", '\\'));
    }

    @ParameterizedTest
    @ValueSource(strings = {"_", "%", "%a"})
    void aLongPatternNeedsNoLargeStack(String part) {
        assertEquals(true, isLike("a".repeat(LONG), part.repeat(LONG), '\\'));
    }

    @Test
    @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aLongPartThatNearlyFitsEverywhereIsRefused() {
        String text = "a".repeat(LONG);
        assertEquals(true, isLike(text, "%" + "a".repeat(LONG / 2) + "%", '\\'));
        StatementExecutionException refusal =
                assertThrows(StatementExecutionException.class, () -> isLike(text, "%" + "a".repeat(LONG / 2) + "b%", '\\'));
        assertTrue(refusal.getMessage().endsWith("shorten it"), refusal.getMessage());
    }

    private static Object isLike(String text, String like, char escape) {
        return new CompiledLikeExpression(new ConstantExpression(text, ColumnTypes.NOTNULL_STRING), new ConstantExpression(like,
                ColumnTypes.NOTNULL_STRING), new ConstantExpression(Character.toString(escape), ColumnTypes.NOTNULL_STRING))
                .evaluate(DataAccessor.NULL, null);
    }
}

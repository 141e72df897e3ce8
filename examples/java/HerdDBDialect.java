import java.sql.SQLException;
import java.sql.Types;
import java.util.Arrays;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.filter.Not;
import org.apache.spark.sql.jdbc.JdbcDialect;
import org.apache.spark.sql.jdbc.JdbcType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DatetimeType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StringType;
import scala.Option;

/**
 * What Spark must know of HerdDB, without which it can neither read nor append. spark_jdbc.py registers it.
 *
 * <p>HerdDB's driver names no types of columns. Each is read as text, unless the reader's option {@code customSchema} says otherwise.
 */
public final class HerdDBDialect extends JdbcDialect {

    private static final long serialVersionUID = 1L;

    @Override
    public boolean canHandle(String url) {
        return url.startsWith("jdbc:herddb:");
    }

    @Override
    public Option<DataType> getCatalystType(int sqlType, String typeName, int size, MetadataBuilder metadata) {
        return sqlType == Types.OTHER ? Option.apply(DataTypes.StringType) : Option.empty();
    }

    @Override
    public Option<JdbcType> getJDBCType(DataType type) {
        if (type instanceof StringType) {
            return Option.apply(new JdbcType("string", Types.VARCHAR));
        }
        if (type instanceof DoubleType) {
            return Option.apply(new JdbcType("double", Types.DOUBLE));
        }
        return type instanceof BooleanType ? Option.apply(new JdbcType("boolean", Types.BOOLEAN)) : Option.empty();
    }

    @Override
    public String quoteIdentifier(String name) {
        return "`" + name + "`";
    }

    @Override
    public String getTableExistsQuery(String table) {
        return "SELECT * FROM " + table + " WHERE 1 = 0";
    }

    /** Conditions that HerdDB refuses, Spark computes itself: those with NOT, and those with a moment, a day or bytes. */
    @Override
    public Option<String> compileExpression(Expression expression) {
        return answers(expression) ? super.compileExpression(expression) : Option.empty();
    }

    private static boolean answers(Expression expression) {
        if (expression instanceof Literal<?> literal) {
            return !(literal.dataType() instanceof DatetimeType || literal.dataType() instanceof BinaryType);
        }
        return !(expression instanceof Not) && Arrays.stream(expression.children()).allMatch(HerdDBDialect::answers);
    }

    @Override
    public boolean isObjectNotFoundException(SQLException error) {
        return String.valueOf(error.getMessage()).contains("not found");
    }

    /** So that {@code truncate} with mode overwrite keeps the table and its key. */
    @Override
    public Option<Object> isCascadingTruncateTable() {
        return Option.apply(false);
    }
}

package io.herdkeeper.node.statement;

import herddb.model.StatementExecutionException;
import java.util.regex.Pattern;
import org.apache.calcite.sql.SqlBasicTypeNameSpec;
import org.apache.calcite.sql.SqlCall;
import org.apache.calcite.sql.SqlDataTypeSpec;
import org.apache.calcite.sql.parser.SqlParseException;
import org.apache.calcite.sql.parser.SqlParser;
import org.apache.calcite.sql.util.SqlBasicVisitor;

/** Refuses parts of a statement that HerdDB's planner takes for something else: it would read, or change, other rows. */
final class MisreadParts {

    private static final Pattern SUSPECT =
            Pattern.compile("\\b(?:ROLLUP|CUBE|SETS)\\b|\\bAS\\s+(?:DECIMAL|DEC|NUMERIC)\\s*\\(", Pattern.CASE_INSENSITIVE);

    private MisreadParts() {
    }

    /** Parses only a statement that may have such a part, since this is done at each execution. */
    static void refuse(String query, SqlParser.Config syntax) {
        if (!SUSPECT.matcher(query).find()) {
            return;
        }
        try {
            SqlParser.create(query, syntax).parseStmt().accept(new SqlBasicVisitor<Void>() {
                @Override
                public Void visit(SqlCall call) {
                    refuse(call);
                    return super.visit(call);
                }
            });
        } catch (SqlParseException error) {
            // the planner says so
        }
    }

    private static void refuse(SqlCall call) {
        switch (call.getKind()) {
            case ROLLUP, CUBE, GROUPING_SETS -> throw new StatementExecutionException(call.getOperator().getName()
                    + " is not supported: HerdDB would return the rows of a plain GROUP BY. Join several queries by UNION ALL");
            case CAST -> {
                if (call.operand(1) instanceof SqlDataTypeSpec type && type.getTypeNameSpec() instanceof SqlBasicTypeNameSpec digits
                        && type.getTypeName().getSimple().equalsIgnoreCase("DECIMAL") && digits.getPrecision() >= 0) {
                    throw new StatementExecutionException("AS DECIMAL(…) is not supported: HerdDB would keep all decimals."
                            + " Write ROUND(CAST(… AS DOUBLE), decimals)");
                }
            }
            default -> {
            }
        }
    }
}

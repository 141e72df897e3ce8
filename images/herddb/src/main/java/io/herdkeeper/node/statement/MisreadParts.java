package io.herdkeeper.node.statement;

import herddb.model.StatementExecutionException;
import java.util.regex.Pattern;
import org.apache.calcite.sql.SqlCall;
import org.apache.calcite.sql.SqlDataTypeSpec;
import org.apache.calcite.sql.SqlDynamicParam;
import org.apache.calcite.sql.SqlIdentifier;
import org.apache.calcite.sql.SqlNode;
import org.apache.calcite.sql.parser.SqlParseException;
import org.apache.calcite.sql.parser.SqlParser;
import org.apache.calcite.sql.util.SqlBasicVisitor;

/** Refuses parts of a statement that HerdDB's planner takes for something else: it would read, or change, other rows. */
final class MisreadParts {

    private static final Pattern SUSPECT = Pattern.compile("\\b(?:ROLLUP|CUBE|SETS)\\b|\\bAS\\s+FLOAT\\b", Pattern.CASE_INSENSITIVE);

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
                if (call.operand(1) instanceof SqlDataTypeSpec type && type.getTypeName().getSimple().equalsIgnoreCase("FLOAT")
                        && isConstant(call.operand(0))) {
                    throw new StatementExecutionException("a constant AS FLOAT is not supported: HerdDB would cut its decimals off."
                            + " Write AS DOUBLE");
                }
            }
            default -> {
            }
        }
    }

    private static boolean isConstant(SqlNode value) {
        boolean[] varies = {false};
        value.accept(new SqlBasicVisitor<Void>() {
            @Override
            public Void visit(SqlIdentifier column) {
                varies[0] = true;
                return null;
            }

            @Override
            public Void visit(SqlDynamicParam parameter) {
                varies[0] = true;
                return null;
            }
        });
        return !varies[0];
    }
}

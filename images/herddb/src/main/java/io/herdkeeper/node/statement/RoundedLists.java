package io.herdkeeper.node.statement;

import herddb.core.AbstractTableManager;
import herddb.core.DBManager;
import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.ColumnTypes;
import herddb.model.StatementExecutionException;
import herddb.model.Table;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.calcite.sql.SqlCall;
import org.apache.calcite.sql.SqlIdentifier;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.SqlLiteral;
import org.apache.calcite.sql.SqlNode;
import org.apache.calcite.sql.SqlNodeList;
import org.apache.calcite.sql.SqlNumericLiteral;
import org.apache.calcite.sql.parser.SqlParseException;
import org.apache.calcite.sql.parser.SqlParser;
import org.apache.calcite.sql.util.SqlBasicVisitor;

/**
 * The lists of a statement with decimals for a column of whole numbers. Calcite casts each number of a list to the type of what stands
 * before IN, so 0.5 finds the row 0. For = and BETWEEN it does not.
 */
final class RoundedLists {

    private static final Pattern LIST = Pattern.compile("\\bIN\\s*(?:\\(|/\\*|--)", Pattern.CASE_INSENSITIVE);
    private static final Pattern DECIMALS = Pattern.compile("\\.\\d|\\d\\.|\\de", Pattern.CASE_INSENSITIVE);

    private record Named(String name, Table table) {
    }

    private final DBManager manager;
    private final String tablespace;
    private final List<Named> tables = new ArrayList<>();

    private RoundedLists(DBManager manager, String tablespace) {
        this.manager = manager;
        this.tablespace = tablespace;
    }

    /** Parses only a statement that may have such a list, since this is done at each execution. */
    static void refuse(DBManager manager, String tablespace, String query, SqlParser.Config syntax) {
        Matcher list = LIST.matcher(query);
        if (!list.find() || !DECIMALS.matcher(query).find(list.end())) {
            return;
        }
        try {
            // HerdDB takes these words away, too, before it parses
            SqlNode statement = SqlParser.create(query.replaceFirst(" FOR UPDATE$", ""), syntax).parseStmt();
            RoundedLists lists = new RoundedLists(manager, tablespace);
            statement.accept(lists.new Tables());
            statement.accept(lists.new Lists());
        } catch (SqlParseException error) {
            // the planner says so
        }
    }

    /** The tables that the statement may name, also by an alias. A column with the name of a table does no harm. */
    private final class Tables extends SqlBasicVisitor<Void> {
        @Override
        public Void visit(SqlIdentifier name) {
            add(last(name), name);
            return null;
        }

        @Override
        public Void visit(SqlCall call) {
            if (call.getKind() == SqlKind.AS && call.operand(0) instanceof SqlIdentifier name && call.operand(1) instanceof SqlIdentifier alias) {
                add(last(alias), name);
            }
            return super.visit(call);
        }

        private void add(String as, SqlIdentifier name) {
            String space = name.names.size() > 1 ? qualifier(name) : tablespace;
            for (String each : manager.getLocalTableSpaces()) {
                TableSpaceManager local = each.equalsIgnoreCase(space) ? manager.getTableSpaceManager(each) : null;
                AbstractTableManager table = local == null ? null : local.getTableManager(last(name).toLowerCase(Locale.ROOT));
                if (table != null) {
                    tables.add(new Named(as, table.getTable()));
                }
            }
        }
    }

    private final class Lists extends SqlBasicVisitor<Void> {
        @Override
        public Void visit(SqlCall call) {
            if ((call.getKind() == SqlKind.IN || call.getKind() == SqlKind.NOT_IN) && call.operand(1) instanceof SqlNodeList list) {
                list.accept(new SqlBasicVisitor<Void>() {
                    @Override
                    public Void visit(SqlLiteral literal) {
                        if (literal instanceof SqlNumericLiteral number && number.bigDecimalValue().stripTrailingZeros().scale() > 0) {
                            refuseColumns(call.operand(0), number);
                        }
                        return null;
                    }
                });
            }
            return super.visit(call);
        }
    }

    private void refuseColumns(SqlNode left, SqlNumericLiteral number) {
        left.accept(new SqlBasicVisitor<Void>() {
            @Override
            public Void visit(SqlIdentifier column) {
                if (isWhole(column)) {
                    String name = column.toString().toLowerCase(Locale.ROOT);
                    throw new StatementExecutionException("a list with " + number.toValue() + " for the whole number " + name
                            + " is not supported: HerdDB would round " + number.toValue() + ", and find other rows. Leave it out, as no whole"
                            + " number equals it, or write " + name + " = " + number.toValue() + " OR " + name + " = …");
                }
                return null;
            }
        });
    }

    /** As in any table of the statement, if its own one is not known. */
    private boolean isWhole(SqlIdentifier name) {
        boolean known = name.names.size() > 1 && tables.stream().anyMatch(each -> each.name.equalsIgnoreCase(qualifier(name)));
        return tables.stream().filter(each -> !known || each.name.equalsIgnoreCase(qualifier(name))).anyMatch(each -> {
            Column column = each.table.getColumn(last(name).toLowerCase(Locale.ROOT));
            return column != null && switch (column.type) {
                case ColumnTypes.INTEGER, ColumnTypes.NOTNULL_INTEGER, ColumnTypes.LONG, ColumnTypes.NOTNULL_LONG -> true;
                default -> false;
            };
        });
    }

    private static String last(SqlIdentifier name) {
        return name.names.get(name.names.size() - 1);
    }

    private static String qualifier(SqlIdentifier name) {
        return name.names.get(name.names.size() - 2);
    }
}

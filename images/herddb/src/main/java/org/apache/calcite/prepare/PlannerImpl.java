package org.apache.calcite.prepare;

import java.io.Reader;
import java.util.List;
import java.util.function.Predicate;
import org.apache.calcite.adapter.enumerable.EnumerableConvention;
import org.apache.calcite.adapter.enumerable.EnumerableRules;
import org.apache.calcite.adapter.java.JavaTypeFactory;
import org.apache.calcite.config.CalciteConnectionConfig;
import org.apache.calcite.config.CalciteConnectionConfigImpl;
import org.apache.calcite.config.CalciteConnectionProperty;
import org.apache.calcite.jdbc.CalciteSchema;
import org.apache.calcite.jdbc.JavaTypeFactoryImpl;
import org.apache.calcite.plan.Convention;
import org.apache.calcite.plan.RelOptCluster;
import org.apache.calcite.plan.RelOptCostImpl;
import org.apache.calcite.plan.RelOptPlanner;
import org.apache.calcite.plan.RelOptRule;
import org.apache.calcite.plan.RelOptTable.ViewExpander;
import org.apache.calcite.plan.RelOptUtil;
import org.apache.calcite.plan.RelTraitDef;
import org.apache.calcite.plan.RelTraitSet;
import org.apache.calcite.plan.hep.HepPlanner;
import org.apache.calcite.plan.hep.HepProgram;
import org.apache.calcite.plan.volcano.VolcanoPlanner;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.RelRoot;
import org.apache.calcite.rel.convert.ConverterRule;
import org.apache.calcite.rel.core.Aggregate;
import org.apache.calcite.rel.core.Filter;
import org.apache.calcite.rel.core.Join;
import org.apache.calcite.rel.core.JoinRelType;
import org.apache.calcite.rel.core.Project;
import org.apache.calcite.rel.core.Sort;
import org.apache.calcite.rel.logical.LogicalJoin;
import org.apache.calcite.rel.logical.LogicalProject;
import org.apache.calcite.rel.rules.CoreRules;
import org.apache.calcite.rel.rules.FilterAggregateTransposeRule;
import org.apache.calcite.rel.rules.SemiJoinRule.ProjectToSemiJoinRule.ProjectToSemiJoinRuleConfig;
import org.apache.calcite.rel.rules.SortProjectTransposeRule;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeSystem;
import org.apache.calcite.rel.type.RelDataTypeSystemImpl;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexUtil;
import org.apache.calcite.schema.SchemaPlus;
import org.apache.calcite.sql.SqlNode;
import org.apache.calcite.sql.parser.SqlParseException;
import org.apache.calcite.sql.parser.SqlParser;
import org.apache.calcite.sql.util.SqlOperatorTables;
import org.apache.calcite.sql.validate.SqlValidator;
import org.apache.calcite.sql2rel.RelDecorrelator;
import org.apache.calcite.sql2rel.SqlToRelConverter;
import org.apache.calcite.tools.FrameworkConfig;
import org.apache.calcite.tools.Planner;
import org.apache.calcite.tools.ValidationException;
import org.apache.calcite.util.Pair;

/**
 * Plans a statement for HerdDB, instead of Calcite's class of this name, as HerdDB has no other place to set what Calcite does.
 *
 * <p>With Calcite's class, of texts of several lengths the shorter ones get spaces at their end ({@link #TYPES}). NULL is NOT IN any query that
 * has no NULL ({@link QueryOperands}). And HerdDB loses parts of what Calcite plans ({@link KeptParts}).
 */
public final class PlannerImpl implements Planner {

    /** Texts of several lengths are no CHARs, which have one length. */
    private static final RelDataTypeSystem TYPES = new RelDataTypeSystemImpl() {
        @Override
        public boolean shouldConvertRaggedUnionTypesToVarying() {
            return true;
        }
    };
    private static final ViewExpander NO_VIEWS = (type, query, schema, view) -> {
        throw new UnsupportedOperationException("HerdDB has no views");
    };
    /** Not for a COUNT or MAX of all rows: it has a row also where there are none. */
    private static final RelOptRule GROUPS_TO_SEMI_JOIN = ProjectToSemiJoinRuleConfig.DEFAULT.withOperandSupplier(
            query -> query.operand(Project.class).oneInput(
                    asked -> asked.operand(Join.class).predicate(PlannerImpl::keepsTheLeft).inputs(
                            left -> left.operand(RelNode.class).anyInputs(),
                            right -> right.operand(Aggregate.class).predicate(PlannerImpl::hasGroups).anyInputs()))).toRule();
    /** Not for a COUNT or MAX of all rows: where HAVING is false, such as {@code ? = 1}, there is no row of it. */
    private static final RelOptRule FILTER_BELOW_GROUPS = FilterAggregateTransposeRule.Config.DEFAULT.withOperandSupplier(
            having -> having.operand(Filter.class).oneInput(
                    rows -> rows.operand(Aggregate.class).predicate(PlannerImpl::hasGroups).anyInputs())).toRule();
    /**
     * Not where a column comes twice, as for {@code SELECT k … ORDER BY k + 0}. Without the hidden one Calcite takes the sorted rows for those of
     * the table, which HerdDB asks for in no order.
     */
    private static final RelOptRule SORT_BELOW_PROJECT = SortProjectTransposeRule.Config.DEFAULT.withOperandSupplier(
            sort -> sort.operand(Sort.class).oneInput(
                    rows -> rows.operand(LogicalProject.class).predicate(PlannerImpl::hasEachOnce).anyInputs())).toRule();
    /** Not those of ON: Calcite joins such a query with one of the two tables alone. */
    private static final HepProgram QUERIES_TO_JOINS = HepProgram.builder().addRuleCollection(
            List.of(CoreRules.FILTER_SUB_QUERY_TO_CORRELATE, CoreRules.PROJECT_SUB_QUERY_TO_CORRELATE)).build();
    /**
     * HerdDB has no plan for UNION and INTERSECT, and of one with a part that is empty Calcite forgets that rows come once. For DISTINCT beside
     * other functions Calcite's usual rule makes GROUPING SETS and FILTERs, which HerdDB does not know.
     */
    private static final HepProgram DISTINCT_TO_GROUPS = HepProgram.builder().addRuleCollection(List.of(
            CoreRules.UNION_TO_DISTINCT, CoreRules.INTERSECT_TO_DISTINCT, CoreRules.AGGREGATE_EXPAND_DISTINCT_AGGREGATES_TO_JOIN)).build();

    private final FrameworkConfig config;
    private final CalciteConnectionConfig connection;
    private final JavaTypeFactory types = new JavaTypeFactoryImpl(TYPES);
    private final RelOptPlanner planner;
    private QueryOperands queries;
    private SqlValidator validator;

    /** As HerdDB's planner makes it, for one statement. */
    public PlannerImpl(FrameworkConfig config) {
        this.config = config;
        this.connection = config.getContext().unwrap(CalciteConnectionConfigImpl.class)
                .set(CalciteConnectionProperty.CASE_SENSITIVE, String.valueOf(config.getParserConfig().caseSensitive()))
                .set(CalciteConnectionProperty.CONFORMANCE, String.valueOf(config.getParserConfig().conformance()));
        this.planner = new VolcanoPlanner(config.getCostFactory(), config.getContext());
        RelOptUtil.registerDefaultRules(planner, connection.materializationsEnabled(), false);
        planner.removeRule(CoreRules.AGGREGATE_CASE_TO_FILTER); // HerdDB would compute SUM(x) for SUM(CASE WHEN … THEN x END)
        planner.removeRule(CoreRules.AGGREGATE_REMOVE); // which takes groups for rows beside AVG and an expression (Calcite 1.32)
        planner.removeRule(CoreRules.AGGREGATE_EXPAND_DISTINCT_AGGREGATES);
        planner.removeRule(EnumerableRules.ENUMERABLE_MERGE_UNION_RULE); // HerdDB merges no parts that are sorted below another operator
        planner.removeRule(CoreRules.SORT_UNION_TRANSPOSE);
        planner.removeRule(CoreRules.JOIN_TO_SEMI_JOIN); // which takes a COUNT or MAX of all rows for a question whether there are any
        replaceRule(CoreRules.SORT_PROJECT_TRANSPOSE, SORT_BELOW_PROJECT);
        replaceRule(CoreRules.FILTER_AGGREGATE_TRANSPOSE, FILTER_BELOW_GROUPS);
        replaceRule(CoreRules.PROJECT_TO_SEMI_JOIN, GROUPS_TO_SEMI_JOIN);
        // which HerdDB can't execute of all joins
        replaceJoinRule(EnumerableRules.ENUMERABLE_MERGE_JOIN_RULE,
                join -> join.getJoinType() == JoinRelType.INNER && join.analyzeCondition().isEqui());
        // of one that only asks whether there is such a row, HerdDB would compare the keys alone
        replaceJoinRule(EnumerableRules.ENUMERABLE_JOIN_RULE,
                join -> join.getJoinType().projectsRight() || join.analyzeCondition().isEqui());
        planner.setExecutor(config.getExecutor());
        for (RelTraitDef<?> trait : config.getTraitDefs()) {
            planner.addRelTraitDef(trait);
        }
    }

    private static boolean keepsTheLeft(Join join) {
        return join.getJoinType() == JoinRelType.INNER || join.getJoinType() == JoinRelType.LEFT;
    }

    private static boolean hasGroups(Aggregate aggregate) {
        return aggregate.getGroupCount() > 0;
    }

    private static boolean hasEachOnce(Project project) {
        List<RexNode> columns = project.getProjects();
        return !project.containsOver() && columns.stream().map(RexUtil::removeCast).distinct().count() == columns.size();
    }

    /** The rule for some joins alone. Calcite has another plan for the rest. */
    private void replaceJoinRule(RelOptRule rule, Predicate<LogicalJoin> some) {
        replaceRule(rule, ((ConverterRule) rule).config.withConversion(LogicalJoin.class, some,
                Convention.NONE, EnumerableConvention.INSTANCE, "Some" + rule.getClass().getSimpleName()).toRule());
    }

    private void replaceRule(RelOptRule rule, RelOptRule by) {
        planner.removeRule(rule);
        planner.addRule(by);
    }

    @Override
    public SqlNode parse(Reader statement) throws SqlParseException {
        SqlNode parsed = SqlParser.create(statement, config.getParserConfig()).parseStmt();
        queries = QueryOperands.of(parsed);
        return parsed;
    }

    @Override
    public SqlNode validate(SqlNode parsed) throws ValidationException {
        CalciteCatalogReader catalog = catalog();
        validator = new CalciteSqlValidator(SqlOperatorTables.chain(config.getOperatorTable(), catalog), catalog, types,
                config.getSqlValidatorConfig()
                        .withDefaultNullCollation(connection.defaultNullCollation())
                        .withLenientOperatorLookup(connection.lenientOperatorLookup())
                        .withConformance(connection.conformance())
                        .withIdentifierExpansion(true));
        try {
            return validator.validate(parsed);
        } catch (RuntimeException error) {
            throw new ValidationException(error);
        }
    }

    @Override
    public RelRoot rel(SqlNode validated) {
        RelOptCluster cluster = RelOptCluster.create(planner, new RexBuilder(types));
        SqlToRelConverter.Config conversion = config.getSqlToRelConverterConfig().withTrimUnusedFields(false);
        if (queries.needNulls()) {
            conversion = conversion.withExpand(false);
        }
        SqlToRelConverter converter =
                new SqlToRelConverter(NO_VIEWS, validator, catalog(), cluster, config.getConvertletTable(), conversion);
        RelRoot root = converter.convertQuery(validated, false, true);
        RelNode rows = converter.flattenTypes(root.rel, true);
        if (queries.needNulls()) {
            QueryOperands.refuseInexact(rows);
            rows = rewritten(rows, QUERIES_TO_JOINS);
        }
        rows = RelDecorrelator.decorrelateQuery(rows, conversion.getRelBuilderFactory().create(cluster, null));
        rows = rewritten(rows, DISTINCT_TO_GROUPS);
        return root.withRel(rows.accept(new KeptParts(cluster.getRexBuilder())));
    }

    private static RelNode rewritten(RelNode rows, HepProgram rules) {
        HepPlanner rewriter = new HepPlanner(rules, null, true, null, RelOptCostImpl.FACTORY);
        rewriter.setRoot(rows);
        return rewriter.findBestExp();
    }

    private CalciteCatalogReader catalog() {
        SchemaPlus own = config.getDefaultSchema();
        SchemaPlus root = own;
        while (root.getParentSchema() != null) {
            root = root.getParentSchema();
        }
        return new CalciteCatalogReader(CalciteSchema.from(root), CalciteSchema.from(own).path(null), types, connection);
    }

    @Override
    public JavaTypeFactory getTypeFactory() {
        return types;
    }

    @Override
    public RelTraitSet getEmptyTraitSet() {
        return planner.emptyTraitSet();
    }

    @Override
    public void close() {
        // holds nothing
    }

    @Override
    public void reset() {
        throw unused();
    }

    @Override
    public Pair<SqlNode, RelDataType> validateAndGetType(SqlNode parsed) {
        throw unused();
    }

    @Override
    @Deprecated
    public RelNode convert(SqlNode validated) {
        throw unused();
    }

    @Override
    public RelNode transform(int program, RelTraitSet traits, RelNode rows) {
        throw unused();
    }

    private static UnsupportedOperationException unused() {
        return new UnsupportedOperationException("HerdDB does not use it");
    }
}

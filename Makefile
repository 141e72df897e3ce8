# Everything that a person runs here. Each target makes ready what it needs; nothing has to be installed first.
run := e2e/bootstrap/run.sh
generated = $(run) python -m herdkeeper.cli crds --out crds $(1) && $(run) python -m herdkeeper.cli reference --out docs/reference.md $(1) \
	&& $(run) python -m herdkeeper.cli network --out docs/network.md $(1) && $(run) python -m herdkeeper.cli rights --out docs/rights.md $(1) \
	&& $(run) python -m herdkeeper.cli plugin --docs docs $(1) \
	&& $(run) python -m herdkeeper.cli chart --out charts/herdkeeper/files $(1) && $(run) python -m herdkeeper_e2e.release.chart_files $(1) \
	&& $(run) python -m herdkeeper_e2e.monitoring.generate $(1)
.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*/\1/p' Makefile)

help: ## what there is
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## /\1|/p' Makefile | awk -F'|' '{printf "  %-22s %s\n", $$1, $$2}'

demo: ## from nothing to a replicated SQL database with data, checkpointed and audited
	@e2e/bootstrap/demo.sh

demo-clean: cluster-clean ## removes what the demo made

test: ## all checks and tests, side by side (RESUME=1 leaves out what passed in the run before, if no file has changed since; SCENARIO=sql_4 chooses the long scenario)
	@SCENARIO='$(SCENARIO)' e2e/bootstrap/stages.sh $(if $(RESUME),--resume)

test-repeated: ## make test RUNS times in a row, with a line for each run (BUSY=1: while a busy loop takes one core)
	@e2e/bootstrap/repeat.sh $(or $(RUNS),10) $(BUSY)

quick: ## after each edit: style, types, walls, and the unit tests that the change since main can reach, nearest first; none begins after 35 s of tests
	@$(MAKE) --no-print-directory -j2 lint imports types unit-reached TEST_SECONDS=35

unit-reached: ## the unit tests that the change since main can reach
	@tests=$$($(run) python -m herdkeeper_e2e.reached_tests) && { [ -n "$$tests" ] || { echo "no unit test is reached"; exit; }; \
		$(run) pytest -q -n auto --dist load --maxschedchunk 20 $(if $(TEST_SECONDS),-p herdkeeper_e2e.bounded_tests --begin-within $(TEST_SECONDS)) $$tests; }

lint: ## style
	@$(run) ruff check && $(run) ruff format --check

types: ## mypy, strict; also of integration tests, scenarios and benchmarks
	@$(run) mypy
	@MYPYPATH=operator/tests/integration $(run) mypy operator/tests/integration/*.py
	@MYPYPATH=spark-jobs/bench:spark-jobs/tests/contract:spark-jobs/tests/integration $(run) mypy spark-jobs/bench/*.py spark-jobs/tests/integration/*.py
	@MYPYPATH=e2e/tests:e2e/tests/attacks:e2e/tests/gitops:e2e/tests/monitoring:e2e/tests/registry:e2e/tests/schedules:e2e/tests/secure:e2e/tests/sql:e2e/tests/storage $(run) mypy e2e/tests/*.py e2e/tests/attacks/*.py e2e/tests/fields/*.py e2e/tests/gitops/*.py e2e/tests/images/*.py e2e/tests/monitoring/*.py e2e/tests/registry/*.py e2e/tests/schedules/*.py e2e/tests/secure/*.py e2e/tests/sql/*.py e2e/tests/storage/*.py e2e/tests/tutorials/*.py e2e/tests/upgrade/*.py

imports: ## the walls between the rooms
	@$(run) lint-imports

lock: ## Python's lock files anew, with the hash of each file; versions stay while pyproject.toml allows them (UPGRADE="pyarrow rich" or UPGRADE=--upgrade for all)
	@e2e/bootstrap/lock.sh $(UPGRADE)

lock-jars: ## images/*/jars.sha256 anew: which jars the images hold, after a change of a pom.xml
	@e2e/images/lock-jars.sh

lock-classes: ## images/*/classes.lst anew: which Java classes the servers load, for the archives of their images; after make lock-jars
	@$(run) python -m herdkeeper_e2e.class_lists

generate: ## CRDs, their copy in the chart, RBAC, the field reference, the tables of ports and of metrics, from the models; the page of the plugin; the chart's table of settings, alerts and dashboards
	@$(call generated,)

verify-generated: ## fails when something generated is stale
	@$(call generated,--check)

unit: ## pure functions, and Spark jobs with a real S3 server beside them
	@$(run) pytest -n auto --dist worksteal

model: ## the rules of membership, release, promotion, archive, drain, bookies and deletion, explored further than by make unit (MORE_FAULTS=2)
	@MORE_FAULTS=$(or $(MORE_FAULTS),1) $(run) pytest operator/tests/unit/test_model_*.py -s -n auto --dist worksteal --timeout 3600

closed-holes: ## the tests of docs/closed-holes.md against the code from before: each must fail there (WORDS="finding:C5" or "-finding: java" chooses rows)
	@$(run) python -m herdkeeper_e2e.closed_holes $(WORDS)

unit-java: ## the node program's tests
	@e2e/images/test-java.sh

nemesis: ## two SQL nodes are stopped, killed or failed at each of their steps, and at each two (two or three hours; CASE="…" repeats one; MINUTES=20 TURN=3)
	@TURN='$(TURN)' MINUTES='$(MINUTES)' e2e/images/nemesis.sh '$(CASE)'

integration: integration-operator integration-servers ## both of the next

integration-operator: ## the operator against a real kube-apiserver and etcd
	@$(run) pytest operator/tests/integration -n auto --maxprocesses 4 --dist worksteal

integration-disturbed: ## the API server fails at each call of each story, one by one (an hour; TURN=5 make integration tells one day's sample again)
	@EVERY_CALL=1 $(run) pytest operator/tests/integration/test_reconcile_disturbed.py -n auto --maxprocesses 4 --dist worksteal --timeout=7200

integration-fields: ## each field of each kind's spec gets another value and its old one back (some minutes; TURN=5 make integration takes one day's tenth again)
	@EVERY_FIELD=1 $(run) pytest operator/tests/integration/test_every_field_and_back.py -n auto --maxprocesses 4 --dist worksteal

integration-cert-manager: ## a running cert-manager makes and renews the authorities of an ensemble, on a real kube-apiserver; it is built from its Go module
	@CERT_MANAGER=1 $(run) pytest operator/tests/integration/test_cert_manager.py

integration-servers: ## a repair against real bookies, the jobs' fold of a log and its restore against real SQL; five groups of files take turns by commit (EVERY=1 runs all)
	@EVERY='$(EVERY)' $(run) pytest spark-jobs/tests/integration --durations=10

integration-azure: ## checkpoints in Azurite, which stands for Azure Blob Storage; needs node and npm
	@AZURITE=1 $(run) pytest spark-jobs/tests/integration/test_checkpoints_in_azure.py

integration-sql: ## random stories in SQL alone (SEED=7 tells one again; SEEDS=200 FIRST=1000)
	@$(run) pytest spark-jobs/tests/integration/test_log_and_sql_agree.py $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first-seed $(FIRST))

fuzz: ## random stories of SQL and faults on plain processes, without Kubernetes, for 10 minutes (SEED=7 tells one again, ACTS=1 its beginning; MINUTES=60 FIRST=1000 JARS=folder)
	@$(run) python -m herdkeeper_e2e.fuzz $(if $(SEED),--seed $(SEED)) $(if $(ACTS),--acts $(ACTS)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(FIRST),--first-seed $(FIRST)) $(if $(JARS),--herddb-jars $(JARS))

e2e: ## the scenarios, on the test cluster
	@$(run) pytest e2e/tests/test_*.py -x -s --durations=10

e2e-scenario: ## one long scenario: the one whose turn it is with this commit, or SCENARIO=sql_4
	@scenario=$$($(run) python -m herdkeeper_e2e.scenario_by_turn $(SCENARIO)) && echo "scenario: $$scenario" && \
		LONGEST_SECONDS=1200 MINUTES=$${MINUTES:-3} $(run) pytest "$$scenario" -x -s --durations=10

e2e-attacks: ## NetworkPolicies are enforced on the test cluster, and strangers try every port of every server
	@$(run) pytest e2e/tests/attacks -x -s

e2e-storage: ## the long scenarios: bookies and ZooKeeper members come and leave under load
	@$(run) pytest e2e/tests/storage -x -s

e2e-schedules: ## checkpoints, restores and audits: by schedule, while pods are killed and leaders move, and what expires
	@$(run) pytest e2e/tests/schedules -x -s

e2e-sql: ## 20 minutes of faults at random under SQL clients, and whether a promise was broken (SEED=7 MINUTES=5 ACTIONS="leader killed,switchover")
	@SEED='$(SEED)' MINUTES='$(MINUTES)' ACTIONS='$(ACTIONS)' $(run) pytest e2e/tests/sql/test_sql_1_*.py -x -s

e2e-sql-scenarios: ## SQL nodes come and go, are encrypted, hang without an operator, hold a false row; preferred leaders; users and passwords
	@$(run) pytest e2e/tests/sql --ignore-glob='*/test_sql_1_*' -x -s

e2e-secure: ## a stack is founded with certificates between its servers, and disturbed; strangers are refused at its ports
	@$(run) pytest e2e/tests/secure --ignore-glob='*/test_secure_4_*' -x -s

e2e-cert-manager: ## a running cert-manager makes the authorities of a stack on the test cluster, and others that take over (half an hour); it is built from its Go module
	@$(run) pytest e2e/tests/secure/test_secure_4_*.py -x -s

e2e-registry: ## a release is pushed to a registry on this machine, and installed from it alone into a cluster of its own, whose nodes are pulled too
	@$(run) pytest e2e/tests/registry -x -s

e2e-images: ## servers and a job run from the operator's pod templates as a user that no image knows, in containers of this machine's engine (HERDKEEPER_PLATFORM=linux/arm64 takes that platform's, by qemu: slowly)
	@e2e/bootstrap/engine.sh && e2e/images/build.sh
	@$(run) pytest e2e/tests/images -x -s

e2e-gitops: ## Flux applies, changes, mends and prunes a database from a git repository on this machine, on the test cluster; its controllers are built from their Go modules
	@$(run) pytest e2e/tests/gitops -x -s

e2e-monitoring: ## a real Prometheus finds and reads every server and the operator as the chart's monitors say, and evaluates its alerts and dashboards, which are drawn as pages in target/dashboards
	@$(run) pytest e2e/tests/monitoring -x -s

dashboards: ## the chart's dashboards as pages in target/dashboards, without Grafana: of a played stack in a real Prometheus, or of yours (PROMETHEUS=http://localhost:9090)
	@$(run) python -m herdkeeper_e2e.monitoring.draw $(if $(PROMETHEUS),--prometheus '$(PROMETHEUS)')

e2e-fields: ## a tenth of the fields of the four servers' kinds get another value under a writer, and their old one back (TURN=5 tells one day's again, FIELDS="tls" chooses by name)
	@TURN='$(TURN)' FIELDS='$(FIELDS)' $(run) pytest e2e/tests/fields -s

rights-used: ## which of its rights the operator has not used, by the audit logs that the last runs of integration-operator and of scenarios kept (LOGS="file file"); fails for one that no test explains
	@$(run) python -m herdkeeper_e2e.rights_used $(LOGS)

e2e-upgrade: ## a stack of version 0.1.0, built from its commit, is upgraded under a writer, goes back and is upgraded again, on a cluster of its own
	@$(run) pytest e2e/tests/upgrade -x -s

e2e-tutorials: ## each command of docs/tutorials as it stands there, on the test cluster, and whether it prints what is shown
	@$(run) pytest e2e/tests/tutorials -x -s

bench-leadership: ## how long no write is acknowledged while the leader changes, on the test cluster (ROUNDS=4 instead of 20; INSECURE=1 in plain text)
	@$(run) python -m herdkeeper_e2e.bench_leadership $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(INSECURE),--insecure)

bench-fleet: ## the operator's process against fleets of played stacks, on a real API server and ZooKeeper (STACKS="10 100 250" ONLY="1 2"; docs/measurements.md)
	@$(run) python -m herdkeeper_e2e.fleet $(if $(STACKS),--stacks $(STACKS)) $(if $(ONLY),--only $(ONLY))

strings: ## each string that a user may see, to read them all at once (LONGER=25 for those with a sentence of more words)
	@$(run) python -m herdkeeper_e2e.strings $(if $(LONGER),--longer $(LONGER))

bench-full-check: ## for how long a full check stops writes, per million rows, on plain processes (ROWS=100000)
	@$(run) python -m herdkeeper_e2e.bench_full_check $(if $(ROWS),--rows $(ROWS))

docs: ## the site of docs/ in site, strict: pages, links and anchors are checked
	@e2e/bootstrap/site.sh

images: ## builds the five images where their inputs changed
	@e2e/bootstrap/engine.sh && e2e/images/build.sh

release: ## the files of a release in dist/, from the commit that is checked out (VERSION=0.2.0 REGISTRY=registry.example.com/team; PLATFORMS="linux/amd64 linux/arm64" instead of this machine's; SOURCE, the repository's address, is a label of the images)
	@$(run) python -m herdkeeper_e2e.release.build '$(VERSION)' --registry '$(REGISTRY)' --source '$(SOURCE)' --platforms '$(PLATFORMS)'

sbom: ## in dist/, what each image of a version holds, as CycloneDX; a release has it (VERSION, by default the checkout's; its images must be built)
	@$(run) python -m herdkeeper_e2e.release.sbom $(VERSION)

scan: sbom ## the known vulnerabilities of what those images hold, as osv.dev tells them; fails for those that docs/known-vulnerabilities.md has not judged
	@$(run) python -m herdkeeper_e2e.release.scan $(VERSION)

push: ## images, for the platforms of dist/, and chart of a release to a registry (VERSION=0.2.0 REGISTRY=registry.example.com/team; REGISTRY_USER and REGISTRY_PASSWORD log in)
	@e2e/images/push.sh '$(VERSION)' '$(REGISTRY)'

publish: ## the files in dist/ as a release on GitHub, under the tag that is there (VERSION=0.2.0)
	@gh release create 'v$(VERSION)' --verify-tag --title 'v$(VERSION)' --notes-file dist/RELEASE-NOTES.md dist/*

cluster: ## the test cluster
	@e2e/kind/cluster.sh up

cluster-clean: ## removes the test cluster
	@e2e/kind/cluster.sh down

bench: ## what the Spark jobs cost, beside a peer in the same run
	@$(run) python spark-jobs/bench/decode_log.py
	@$(run) python spark-jobs/bench/join_light_audit.py
	@$(run) python spark-jobs/bench/fold_changes.py
	@$(run) python spark-jobs/bench/encrypted_files.py

bench-servers: ## the same for what talks to servers: ZooKeeper, bookies and a SQL node are started as plain processes (some minutes; FULL=--full takes longer, and 10 GB of disk)
	@$(run) python spark-jobs/bench/collect_znodes.py $(FULL)
	@$(run) python spark-jobs/bench/audit_deep.py $(FULL)
	@$(run) python spark-jobs/bench/load_rows.py $(FULL)
	@$(run) python spark-jobs/bench/load_circle.py $(FULL)
	@$(run) python spark-jobs/bench/stream_changes.py $(FULL)
	@$(run) python spark-jobs/bench/encrypted_stack.py $(FULL)

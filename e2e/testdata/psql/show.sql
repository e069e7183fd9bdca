-- on: streamdb
-- SHOW, SHOW CREATE, EXPLAIN, settings, psql's own commands.
CREATE TABLE t (id int PRIMARY KEY, k int, v text DEFAULT 'x');
CREATE VIEW w AS SELECT k, count(*) AS n FROM t GROUP BY k;
CREATE MATERIALIZED VIEW m AS SELECT k, n FROM w WHERE n > 1;
CREATE INDEX i ON t (k);
CREATE SECRET pw AS 'hush';
CREATE CONNECTION kc TO KAFKA (BROKER 'nowhere.example:9092', SECURITY PROTOCOL = 'SASL_PLAINTEXT', SASL MECHANISMS = 'PLAIN', SASL USERNAME = 'u', SASL PASSWORD = SECRET pw);
CREATE SOURCE ticks FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1h');
CREATE CLUSTER heavy;
SHOW TABLES;
SHOW VIEWS;
SHOW MATERIALIZED VIEWS;
SHOW SOURCES;
SHOW INDEXES;
SHOW CONNECTIONS;
SHOW SECRETS;
SHOW SCHEMAS;
SHOW DATABASES;
SHOW CLUSTERS;
SHOW OBJECTS;
SHOW COLUMNS FROM t;
SHOW INDEXES FROM t;
SHOW TABLES LIKE 'x%';
SHOW CREATE TABLE t;
SHOW CREATE VIEW w;
SHOW CREATE MATERIALIZED VIEW m;
SHOW CREATE INDEX i;
SHOW CREATE SOURCE ticks;
SHOW CREATE CONNECTION kc;
SHOW CREATE TABLE nothing;
SHOW CREATE VIEW t;
EXPLAIN SELECT k, count(*) FROM t WHERE v = 'x' GROUP BY k;
EXPLAIN OPTIMIZED PLAN FOR SELECT k, count(*) FROM t WHERE v = 'x' GROUP BY k;
EXPLAIN RAW PLAN FOR SELECT k FROM t WHERE v = 'x';
EXPLAIN DECORRELATED PLAN FOR SELECT k FROM t WHERE v = 'x';
EXPLAIN PHYSICAL PLAN FOR SELECT k, count(*) FROM t WHERE v = 'x' GROUP BY k;
EXPLAIN SELECT * FROM t WHERE id = 7;
EXPLAIN SELECT * FROM t WHERE k = 7;
EXPLAIN MATERIALIZED VIEW m;
EXPLAIN PHYSICAL PLAN FOR MATERIALIZED VIEW m;
EXPLAIN CREATE MATERIALIZED VIEW z AS SELECT t.id, w.n FROM t JOIN w ON t.k = w.k;
EXPLAIN INSERT INTO t VALUES (1);
EXPLAIN (FORMAT JSON) SELECT 1 AS one;
SHOW server_version;
SHOW timezone;
SET timezone = 'Europe/Berlin';
SELECT timestamptz '2024-07-01 12:00Z';
SET LOCAL timezone = 'UTC';
RESET timezone;
SET nonsense = 1;
SHOW nonsense;
SET client_min_messages = 'none';
SET DateStyle = 'German';
SELECT date '2024-07-01';
RESET ALL;
SELECT current_setting('DateStyle'), set_config('application_name', 'test', false), current_database(), current_user, version() LIKE 'PostgreSQL 15%';
\d
\dt
\dv
\dm
\di
\dn
\d t
\d w
\d m
SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1;
SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position;
SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1;

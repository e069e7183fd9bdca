-- Faulty statements, one a line. A line with several, separated by " ;; ", is run in one transaction.
-- Names of relations, columns, functions, types.
SELECT * FROM nosuch
SELECT * FROM noschema.t
SELECT * FROM pg_catalog.nosuch
SELECT nosuch FROM t
SELECT t.nosuch FROM t
SELECT x.a FROM t
SELECT aa FROM t
SELECT t1.a FROM t AS t2
SELECT t.a FROM t AS t2
SELECT nosuch.a.b FROM t
SELECT a.b.c.d.e FROM t
SELECT id FROM t, u
SELECT t.id FROM t JOIN u ON id = 1
SELECT * FROM t JOIN u USING (nosuch)
SELECT * FROM t JOIN u USING (a)
SELECT * FROM t, t
SELECT * FROM t JOIN t ON true
SELECT * FROM t AS x, u AS x
SELECT * FROM t AS x(p, q, r, s, v, w)
SELECT * FROM (SELECT 1)
SELECT * FROM (SELECT 1) AS x(a, b)
SELECT x.* FROM t
SELECT *
SELECT nosuch(1)
SELECT nosuch.f(1)
SELECT abs('x', 1)
SELECT abs(true)
SELECT upper(1)
SELECT (true, 1) >= (now(), 1)
SELECT CASE WHEN true THEN macaddr8 '08-00-2b-01-02-03' ELSE null::jsonb END
SELECT CASE WHEN true THEN NULL::jsonb ELSE NULL::macaddr8 END
SELECT coalesce(NULL::jsonb, NULL::macaddr8)
SELECT (1, true) <= (1, now())
SELECT length(1)
SELECT substring(1, 2)
SELECT count(1, 2)
SELECT sum(s) FROM t
SELECT max(p) FROM (SELECT point '(1,2)' AS p) q
SELECT lower(variadic ARRAY['x'])
SELECT format(variadic 'x')
SELECT make_interval(nosuch => 1)
SELECT make_interval(days => 1, days => 2)
SELECT make_interval(days => 1, 2)
SELECT CAST(1 AS nosuch)
SELECT 1::nosuch
SELECT 'x'::noschema.typ
SELECT '1'::int(3)
SELECT '1'::numeric(0)
SELECT '1'::numeric(2000)
SELECT '1'::numeric(5, 2000)
SELECT '1'::varchar(0)
SELECT '1'::varchar('x')
SELECT '1'::text(3)
SELECT '1'::char(10485761)
SELECT '1'::timestamp(-1)
SELECT 1 + true
SELECT 1 || 2
SELECT 'a' + 'b'
SELECT 1 = 'x'
SELECT true > 1
SELECT -'x'::text
SELECT NOT 1
SELECT !1
SELECT 1 @@@ 2
SELECT 1 ## 2
SELECT t + 1 FROM t
SELECT a = s FROM t
SELECT s LIKE 1 FROM t
SELECT a ~ 'x' FROM t
SELECT now() + 1
SELECT date '2020-01-01' + date '2020-01-01'
SELECT interval '1 day' * interval '1 day'
SELECT ARRAY[1, 2] || ARRAY['x']::text[]
SELECT ARRAY[1, 'x']
SELECT ARRAY[1, true]
SELECT ARRAY[]
SELECT ARRAY[[1, 2], [3]]
SELECT (1)[1]
SELECT (ARRAY[1])['x']
SELECT (ARRAY[1])[true]
SELECT (1).x
SELECT (ROW(1, 2)).x
SELECT (ROW(1, 2)).f3
SELECT ROW(1, 2) = ROW(1)
SELECT ROW(1, 2) < ROW(1, true)
SELECT 1 IN ('x')
SELECT 1 IN (true, 2)
SELECT 1 = ANY (1)
SELECT 1 = ANY (ARRAY['x'::text])
SELECT 1 IN (SELECT 'x'::text)
SELECT 1 IN (SELECT 1, 2)
SELECT (1, 2) IN (SELECT 1)
SELECT (SELECT 1, 2)
SELECT (SELECT a FROM t)
SELECT ARRAY(SELECT 1, 2)
SELECT CASE WHEN 1 THEN 2 END
SELECT CASE WHEN true THEN 1 ELSE 'x' END
SELECT CASE WHEN true THEN 1 ELSE true END
SELECT CASE 1 WHEN 'x' THEN 2 END
SELECT CASE 1 WHEN true THEN 2 END
SELECT COALESCE(1, 'x')
SELECT COALESCE(1, true)
SELECT NULLIF(1, true)
SELECT GREATEST(1, 'x')
SELECT LEAST(1, true)
SELECT 1 WHERE 1
SELECT 1 WHERE 'x'
SELECT a FROM t HAVING a
SELECT 1 LIMIT 'x'
SELECT 1 LIMIT -1
SELECT 1 OFFSET -1
SELECT 1 LIMIT true
SELECT a FROM t LIMIT a
SELECT 1 FETCH FIRST ROW WITH TIES
SELECT $1
SELECT $1::int + $3
-- Literals.
SELECT 'x'::int
SELECT ''::int
SELECT '1.5'::int
SELECT '99999999999'::int
SELECT '99999'::smallint
SELECT '99999999999999999999'::bigint
SELECT 'x'::numeric
SELECT '1e1000000'::numeric
SELECT '123.45'::numeric(4, 2)
SELECT 'x'::float8
SELECT '1e400'::float8
SELECT '1e-400'::float8
SELECT '1e50'::float4
SELECT 'maybe'::bool
SELECT 'x'::date
SELECT '2020-02-30'::date
SELECT '2020-13-01'::date
SELECT '25:00'::time
SELECT '2020-01-01 99:00'::timestamp
SELECT '2020-01-01 00:00 Nowhere'::timestamptz
SELECT 'x'::interval
SELECT '1 fortnight'::interval
SELECT 'x'::uuid
SELECT '{'::json
SELECT '{"a":}'::json
SELECT '[1,]'::jsonb
SELECT '"\u0000"'::jsonb
SELECT '{1,2'::int[]
SELECT '1,2'::int[]
SELECT '{1,x}'::int[]
SELECT '{{1},{1,2}}'::int[]
SELECT '[1:2]={1}'::int[]
SELECT '[1,2'::int4range
SELECT '[5,1]'::int4range
SELECT '(x,2)'::int4range
SELECT '{[1,2}'::int4multirange
SELECT '\xzz'::bytea
SELECT '\x1'::bytea
SELECT 'a\b'::bytea
SELECT B'12'
SELECT '12'::bit(2)
SELECT '101'::bit(2)
SELECT '101'::varbit(2)
SELECT 'x'::money
SELECT 'x'::oid
SELECT 'nosuch'::regclass
SELECT 'nosuch'::regtype
SELECT 'nosuch'::regproc
SELECT 'abs'::regproc
SELECT '$.'::jsonpath
SELECT 'x'::mood
SELECT 'x'::small
SELECT '20'::small
SELECT 20::small
SELECT '(1'::comp
SELECT '(1,2,3)'::comp
SELECT ROW(1)::comp
SELECT ROW(1, 2, 3)::comp
SELECT ROW('x', 'y')::comp
SELECT date 'x'
SELECT int 'x'
SELECT timestamp '2020-01-01' AT TIME ZONE 'Nowhere'
-- Casts that are not there.
SELECT true::date
SELECT 1::date
SELECT now()::int
SELECT 1.5::bool
SELECT 'a'::text::mood::int
SELECT ARRAY[1]::int
SELECT 1::int[]
SELECT '{}'::json::int
SELECT '{}'::jsonb::int
SELECT '"x"'::jsonb::int
SELECT '1'::uuid::int
SELECT 1::bit(8)::date
-- Arithmetic.
SELECT 1 / 0
SELECT 1.0 / 0
SELECT 1 % 0
SELECT 1::float8 / 0
SELECT 2147483647 + 1
SELECT -2147483648 - 1
SELECT 32767::int2 + 1::int2
SELECT 9223372036854775807 + 1
SELECT 2147483647 * 2
SELECT abs(-2147483648)
SELECT 99999999999::int
SELECT 1e10::int
SELECT 'NaN'::float8::int
SELECT 1e300::float8 * 1e300
SELECT 1e-300::float8 * 1e-300
SELECT 1e200::float8::float4
SELECT sqrt(-1)
SELECT sqrt(-1::numeric)
SELECT ln(0)
SELECT ln(-1::numeric)
SELECT log(0::numeric)
SELECT power(0, -1)
SELECT power(-1, 0.5)
SELECT exp(1000)
SELECT exp(10000::numeric)
SELECT factorial(-1)
SELECT acos(2)
SELECT 5 << 100000000000
SELECT lcm(2147483647, 2147483646)
SELECT div(1, 0)
SELECT mod(1, 0)
SELECT width_bucket(1, 1, 1, 3)
SELECT width_bucket(1, 0, 1, 0)
SELECT date '2020-01-01' + 2147483647
SELECT timestamp '2020-01-01' + interval '300000 years'
SELECT interval '2147483647 months' * 2
SELECT date_trunc('nosuch', now())
SELECT date_part('nosuch', now())
SELECT extract(nosuch FROM now())
SELECT extract(hour FROM date '2020-01-01')
SELECT to_date('x', 'YYYY')
SELECT to_timestamp('2020-13-01', 'YYYY-MM-DD')
SELECT to_number('x', '999')
SELECT to_char(1, 'nosuch"')
SELECT make_date(2020, 13, 1)
SELECT make_time(25, 0, 0)
SELECT date_bin('0 days', now(), now())
SELECT age('x')
-- Strings, arrays, json.
SELECT substring('abc', 1, -1)
SELECT chr(0)
SELECT chr(-1)
SELECT repeat('x', 2000000000)
SELECT 'a' ~ '('
SELECT 'a' ~ '*'
SELECT 'a' SIMILAR TO '('
SELECT regexp_replace('a', 'a', 'b', 'z')
SELECT regexp_matches('a', '[')
SELECT 'a' LIKE 'a' ESCAPE 'xx'
SELECT 'a' LIKE '\'
SELECT split_part('a', ',', 0)
SELECT overlay('abc' placing 'x' from 0)
SELECT decode('zz', 'hex')
SELECT decode('x', 'nosuch')
SELECT encode('x', 'nosuch')
SELECT convert_from('\xff', 'UTF8')
SELECT get_byte('\x00', 5)
SELECT set_bit('\x00', 9, 1)
SELECT format('%s')
SELECT format('%q', 1)
SELECT format('%I', NULL)
SELECT format('%0$s', 1)
SELECT array_length(1, 1)
SELECT array_append(ARRAY[1], 'x')
SELECT array_append(ARRAY[[1]], 1)
SELECT array_cat(ARRAY[1], ARRAY[[[1]]])
SELECT array_fill(1, NULL)
SELECT array_fill(1, ARRAY[-1])
SELECT array_position(ARRAY[[1]], 1)
SELECT array_remove(ARRAY[[1]], 1)
SELECT unnest(1)
SELECT generate_series(1, 5, 0)
SELECT generate_series(1, 'x')
SELECT '[1]'::jsonb - 'a' - 1.5
SELECT '1'::jsonb - 'a'
SELECT '[1]'::jsonb -> true
SELECT jsonb_set('1', '{a}', '2')
SELECT jsonb_insert('{"a":1}', '{a}', '2')
SELECT json_object('{a}')
SELECT json_object('{a,NULL}', '{b,c}')
SELECT json_object(ARRAY[NULL], ARRAY['x'])
SELECT json_build_object('a')
SELECT json_build_object(NULL, 1)
SELECT jsonb_each('[1]')
SELECT json_array_elements('{}')
SELECT jsonb_array_length('{}')
SELECT jsonb_path_query('1', '$.a')  , jsonb_path_query('{}', 'strict $.a')
SELECT jsonb_path_query('{}', '$.a +')
SELECT lower(int4range(1, 2), 3)
SELECT int4range(5, 1)
SELECT int4range(1, 2, 'xx')
SELECT int4range(1, 2) + int4range(5, 6)
SELECT int4range(1, 10) - int4range(3, 4)
SELECT lag(1)
SELECT nextval('nosuch')
SELECT currval('sq')
SELECT lastval()
SELECT setval('sq', 0)
SELECT nextval('t')
SELECT current_setting('nosuch')
SELECT set_config('nosuch', 'x', false)
SELECT pg_get_viewdef('nosuch')
SELECT enum_first(1)
-- Grouping, aggregates, windows.
SELECT a, count(*) FROM t
SELECT a, b FROM t GROUP BY a
SELECT a + b FROM t GROUP BY a
SELECT * FROM t GROUP BY a
SELECT s FROM t GROUP BY b
SELECT a FROM t GROUP BY 2
SELECT a FROM t GROUP BY 'x'
SELECT count(*) FROM t GROUP BY count(*)
SELECT a FROM t WHERE count(*) > 1
SELECT a FROM t GROUP BY a HAVING b > 1
SELECT a FROM t ORDER BY count(*)
SELECT sum(sum(a)) FROM t
SELECT sum(row_number() OVER ()) FROM t
SELECT row_number() OVER (ORDER BY row_number() OVER ()) FROM t
SELECT row_number() FROM t
SELECT sum(a) OVER w FROM t
SELECT sum(a) OVER (w PARTITION BY b) FROM t WINDOW w AS (PARTITION BY a)
SELECT sum(a) OVER (w ORDER BY b) FROM t WINDOW w AS (ORDER BY a)
SELECT sum(a) OVER (PARTITION BY a), a FROM t WINDOW w AS (), w AS ()
SELECT a FROM t WHERE row_number() OVER () = 1
SELECT a FROM t GROUP BY a HAVING row_number() OVER () = 1
SELECT sum(a) OVER (ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) FROM t
SELECT sum(a) OVER (ROWS BETWEEN a PRECEDING AND CURRENT ROW) FROM t
SELECT sum(a) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM t
SELECT sum(a) OVER (ROWS UNBOUNDED FOLLOWING) FROM t
SELECT sum(a) OVER (RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t
SELECT sum(a) OVER (ORDER BY s RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t
SELECT sum(a) OVER (GROUPS 1 PRECEDING) FROM t
SELECT sum(DISTINCT a) OVER () FROM t
SELECT rank(1) OVER () FROM t
SELECT ntile(0) OVER () FROM t
SELECT nth_value(a, 0) OVER () FROM t
SELECT lag(a, 1, 'x') OVER () FROM t
SELECT abs(*) FROM t
SELECT abs(DISTINCT a) FROM t
SELECT abs(a) FILTER (WHERE true) FROM t
SELECT abs(a) OVER () FROM t
SELECT count(a ORDER BY) FROM t
SELECT percentile_cont(0.5) FROM t
SELECT percentile_cont(2) WITHIN GROUP (ORDER BY a) FROM t
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY s) FROM t
SELECT sum(a) WITHIN GROUP (ORDER BY a) FROM t
SELECT mode() WITHIN GROUP (ORDER BY a, b) FROM t
SELECT string_agg(s) FROM t
SELECT string_agg(DISTINCT s, ',' ORDER BY a) FROM t
SELECT count(DISTINCT j) FROM (SELECT '1'::json AS j) q
SELECT grouping(a) FROM t
SELECT grouping(b) FROM t GROUP BY a
SELECT a FROM t GROUP BY ROLLUP (1)
SELECT count(generate_series(1, 2)) FROM t
SELECT a FROM t WHERE generate_series(1, 2) = 1
SELECT CASE WHEN true THEN generate_series(1, 2) END
SELECT COALESCE(generate_series(1, 2), 1)
SELECT a FROM t LIMIT generate_series(1, 2)
SELECT 1 FROM t WHERE (SELECT count(t.a)) > 1
SELECT (SELECT sum(t.a) FROM u) FROM t GROUP BY t.b HAVING t.a > 1
SELECT max('{}'::json)
-- DISTINCT, ORDER BY, set operations, WITH.
SELECT DISTINCT a FROM t ORDER BY b
SELECT DISTINCT ON (a) b FROM t ORDER BY b
SELECT DISTINCT '1'::json
SELECT a FROM t ORDER BY 3
SELECT a FROM t ORDER BY nosuch
SELECT a FROM t ORDER BY 'x'
SELECT a, a AS b FROM t ORDER BY b + nosuch
SELECT a AS x, b AS x FROM t ORDER BY x
SELECT '1'::json ORDER BY 1
SELECT 1 UNION SELECT 1, 2
SELECT 1 UNION SELECT 'x'
SELECT 1 UNION SELECT true
SELECT 1 UNION SELECT 2 ORDER BY nosuch
SELECT a FROM t UNION SELECT a FROM t ORDER BY a + 1
SELECT 1 INTERSECT SELECT date '2020-01-01'
SELECT '1'::json UNION SELECT '2'::json
VALUES (1, 2), (3)
VALUES (1), ('x'), (true)
VALUES (1), (true)
SELECT * FROM (VALUES (1), (DEFAULT)) v
WITH x AS (SELECT 1), x AS (SELECT 2) SELECT * FROM x
WITH x(a, b) AS (SELECT 1) SELECT * FROM x
WITH x AS (SELECT * FROM y), y AS (SELECT 1) SELECT * FROM x
WITH RECURSIVE x AS (SELECT * FROM x) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x x1, x x2) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n::text FROM x) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT sum(n) FROM x) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n FROM t LEFT JOIN x ON true) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n FROM x ORDER BY 1) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 INTERSECT SELECT n FROM x) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT n FROM x UNION ALL SELECT 1) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT 2 WHERE EXISTS (SELECT 1 FROM x)) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n FROM y), y(n) AS (SELECT n FROM x) SELECT * FROM x
WITH x AS (INSERT INTO u VALUES (1, 1)) SELECT * FROM x
SELECT * FROM t, (SELECT t.a) q
SELECT * FROM t RIGHT JOIN LATERAL (SELECT t.a) q ON true
SELECT * FROM t FULL JOIN u ON t.a > u.id
SELECT a INTO nosuch.x FROM t
SELECT a FROM t FOR UPDATE OF nosuch
SELECT count(*) FROM t FOR UPDATE
SELECT a FROM t GROUP BY a FOR UPDATE
-- Syntax.
SELECT FROM WHERE
SELEC 1
SELECT 1 +
SELECT (1
SELECT 'abc
SELECT "abc
SELECT 1 AS select
SELECT * FROM t WHERE
SELECT * FROM t GROUP a
SELECT 1;; SELECT
SELECT U&'\zzzz'
SELECT E'\xff'
SELECT $$abc
SELECT /* x
SELECT a b c FROM t
INSERT t VALUES (1)
UPDATE SET a = 1
CREATE TABLE (a int)
-- INSERT, UPDATE, DELETE, MERGE.
INSERT INTO nosuch VALUES (1)
INSERT INTO t (nosuch) VALUES (1)
INSERT INTO t (a, a) VALUES (1, 2)
INSERT INTO t (id, a) VALUES (1)
INSERT INTO t (id) VALUES (1, 2)
INSERT INTO t VALUES (1, 2, 's', 4, 5, 6)
INSERT INTO t (id, a) SELECT 1
INSERT INTO t (id, a) VALUES (1, 'x')
INSERT INTO t (id, a) VALUES (1, true)
INSERT INTO t (id, a) SELECT 1, 'x'::text
INSERT INTO t (id, s) VALUES (9, 'toolong')
INSERT INTO t (a) VALUES (1)
INSERT INTO t (id) VALUES (NULL)
INSERT INTO t (id) VALUES (1)
INSERT INTO t (id) VALUES (50), (50)
INSERT INTO t (id, b) VALUES (9, -1)
INSERT INTO u VALUES (1, 999)
INSERT INTO g (y) VALUES (1)
INSERT INTO g (z) VALUES (1)
INSERT INTO t (id) VALUES (1) ON CONFLICT DO UPDATE SET a = 1
INSERT INTO t (id) VALUES (1) ON CONFLICT (a) DO NOTHING
INSERT INTO t (id) VALUES (1) ON CONFLICT (nosuch) DO NOTHING
INSERT INTO t (id) VALUES (1) ON CONFLICT ON CONSTRAINT nosuch DO NOTHING
INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET nosuch = 1
INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET a = b
INSERT INTO t (id) VALUES (60), (60) ON CONFLICT (id) DO UPDATE SET a = 1
INSERT INTO t (id) VALUES (1) RETURNING nosuch
INSERT INTO t DEFAULT VALUES
INSERT INTO t (id) VALUES (count(*))
INSERT INTO v VALUES (1)
UPDATE nosuch SET a = 1
UPDATE t SET nosuch = 1
UPDATE t SET a = 1, a = 2
UPDATE t SET a = 'x'
UPDATE t SET a = true
UPDATE t SET a = nosuch
UPDATE t SET a = count(*)
UPDATE t SET (a, b) = (1)
UPDATE t SET (a, b) = (SELECT 1)
UPDATE t SET (a, b) = (1, 2, 3)
UPDATE t SET id = NULL
UPDATE t SET id = 1
UPDATE t SET b = -1
UPDATE t SET a = 1 WHERE a
UPDATE t SET a = (SELECT id FROM u)
UPDATE t SET t.a = 1
UPDATE t x SET x.a = 1
UPDATE t SET a = 1 FROM t
UPDATE g SET y = 1
DELETE FROM nosuch
DELETE FROM t WHERE nosuch = 1
DELETE FROM t WHERE count(*) > 1
DELETE FROM t USING t
DELETE FROM t
TRUNCATE nosuch
TRUNCATE t
MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET nosuch = 1
MERGE INTO t USING nosuch ON true WHEN MATCHED THEN DELETE
MERGE INTO t USING (VALUES (1), (1)) s(i) ON t.id = s.i WHEN MATCHED THEN UPDATE SET a = 0
-- DDL.
CREATE TEMP TABLE t (a int)
CREATE TEMP TABLE x (a int, a int)
CREATE TEMP TABLE x (a nosuch)
CREATE TEMP TABLE x (a int DEFAULT 'x')
CREATE TEMP TABLE x (a int DEFAULT b)
CREATE TEMP TABLE x (a int DEFAULT count(*))
CREATE TEMP TABLE x (a int DEFAULT (SELECT 1))
CREATE TEMP TABLE x (a int DEFAULT generate_series(1, 2))
CREATE TEMP TABLE x (a int CHECK (b > 1))
CREATE TEMP TABLE x (a int CHECK (a))
CREATE TEMP TABLE x (a int CHECK (count(*) > 1))
CREATE TEMP TABLE x (a int CHECK (a > (SELECT 1)))
CREATE TEMP TABLE x (a int PRIMARY KEY, b int PRIMARY KEY)
CREATE TEMP TABLE x (a int, PRIMARY KEY (nosuch))
CREATE TEMP TABLE x (a int, PRIMARY KEY (a, a))
CREATE TEMP TABLE x (a int, UNIQUE (nosuch))
CREATE TEMP TABLE x (a json PRIMARY KEY)
CREATE TEMP TABLE x (a int REFERENCES nosuch)
CREATE TEMP TABLE x (a int REFERENCES t (nosuch))
CREATE TEMP TABLE x (a int REFERENCES t (a))
CREATE TEMP TABLE x (a text REFERENCES t)
CREATE TEMP TABLE x (a int, b int, FOREIGN KEY (a, b) REFERENCES t)
CREATE TEMP TABLE x (a int NOT NULL NULL)
CREATE TEMP TABLE x (a int GENERATED ALWAYS AS (b) STORED)
CREATE TEMP TABLE x (a int, b int GENERATED ALWAYS AS (random()) STORED)
CREATE TEMP TABLE x (a int, b int DEFAULT 1 GENERATED ALWAYS AS (a) STORED)
CREATE TEMP TABLE x (a text GENERATED ALWAYS AS IDENTITY)
CREATE TEMP TABLE x (a int, CONSTRAINT c CHECK (a > 1), CONSTRAINT c CHECK (a > 2))
CREATE TEMP TABLE x AS SELECT 1 AS a, 2 AS a
CREATE TEMP TABLE x (a, b) AS SELECT 1
CREATE TEMP TABLE x (a, b, c) AS SELECT 1, 2
CREATE TEMP VIEW v AS SELECT 1
CREATE TEMP VIEW x (a, b) AS SELECT 1
CREATE TEMP VIEW x AS SELECT 1, 2
CREATE TEMP VIEW x AS SELECT nosuch FROM t
CREATE TEMP VIEW x AS SELECT $1::int
CREATE OR REPLACE TEMP VIEW v AS SELECT 'x'::text AS id
CREATE OR REPLACE TEMP VIEW v AS SELECT 1 AS other
CREATE INDEX ON nosuch (a)
CREATE INDEX ON t (nosuch)
CREATE UNIQUE INDEX ON dup (a)
CREATE TYPE mood AS ENUM ('a')
CREATE TYPE nm AS ENUM ('a', 'a')
CREATE DOMAIN nd AS nosuch
CREATE DOMAIN small AS int
CREATE TEMP SEQUENCE sq
CREATE TEMP SEQUENCE s2 INCREMENT 0
CREATE TEMP SEQUENCE s2 MINVALUE 5 MAXVALUE 1
CREATE TEMP SEQUENCE s2 START 0
CREATE SCHEMA pg_mine
CREATE TABLE noschema.x (a int)
ALTER TABLE nosuch ADD COLUMN x int
ALTER TABLE t ADD COLUMN a int
ALTER TABLE t ADD COLUMN x nosuch
ALTER TABLE t DROP COLUMN nosuch
ALTER TABLE t DROP COLUMN id
ALTER TABLE t RENAME COLUMN nosuch TO y
ALTER TABLE t RENAME COLUMN a TO b
ALTER TABLE t RENAME TO u
ALTER TABLE t ALTER COLUMN nosuch SET NOT NULL
ALTER TABLE t ALTER COLUMN a TYPE nosuch
ALTER TABLE t ALTER COLUMN s TYPE int
ALTER TABLE t ALTER COLUMN a SET DEFAULT 'x'
ALTER TABLE dup ADD PRIMARY KEY (a)
ALTER TABLE dup ADD CHECK (a > 5)
ALTER TABLE dup ALTER COLUMN n SET NOT NULL
ALTER TABLE t ADD PRIMARY KEY (a)
ALTER TABLE t DROP CONSTRAINT nosuch
ALTER TABLE t ADD CONSTRAINT t_b_check CHECK (true)
DROP TABLE nosuch
DROP TABLE t
DROP TABLE v
DROP VIEW nosuch
DROP VIEW t
DROP INDEX nosuch
DROP SEQUENCE nosuch
DROP TYPE nosuch
DROP TYPE mood
DROP DOMAIN nosuch
DROP SCHEMA nosuch
DROP FUNCTION nosuch(int)
COMMENT ON TABLE nosuch IS 'x'
COMMENT ON COLUMN t.nosuch IS 'x'
-- Sessions: cursors, prepared statements, transactions, settings.
FETCH 1 FROM nosuch
CLOSE nosuch
MOVE 1 FROM nosuch
DECLARE c CURSOR FOR SELECT nosuch
DECLARE c CURSOR FOR SELECT 1 ;; DECLARE c CURSOR FOR SELECT 2
DECLARE c CURSOR FOR SELECT 1 ;; FETCH BACKWARD 1 FROM c ;; CLOSE c ;; FETCH 1 FROM c
DECLARE c NO SCROLL CURSOR FOR SELECT 1 ;; FETCH 1 FROM c ;; FETCH PRIOR FROM c
EXECUTE nosuch
DEALLOCATE nosuch
PREPARE p AS SELECT $1::int ;; EXECUTE p ;; SELECT 1
PREPARE p2 AS SELECT $1::int ;; EXECUTE p2 (1, 2)
PREPARE p3 AS SELECT $1::int ;; EXECUTE p3 ('x')
PREPARE p4 (int) AS SELECT $1 + $2
PREPARE p5 (nosuch) AS SELECT $1
PREPARE p6 AS SELECT 1 ;; PREPARE p6 AS SELECT 2
PREPARE p7 (int) AS SELECT $1 ;; EXECUTE p7 (true)
SELECT 1 / 0 ;; SELECT 1
SAVEPOINT a ;; SELECT 1 / 0 ;; ROLLBACK TO nosuch
SAVEPOINT a ;; RELEASE b
ROLLBACK TO nosuch
SET nosuch = 1
SET datestyle = 'nosuch'
SET timezone = 'Nowhere/Else'
SET extra_float_digits = 99
SET work_mem = 'x'
SET statement_timeout = '1 fortnight'
SET search_path =
SET client_encoding = 'nosuch'
SET transaction_isolation = 'nosuch'
SHOW nosuch
RESET nosuch
SELECT 1 ;; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
SET TRANSACTION READ ONLY ;; INSERT INTO t (id) VALUES (70)
EXPLAIN SELECT nosuch
EXPLAIN (nosuch) SELECT 1
-- Transactions, cursors, EXPLAIN.
COMMIT AND CHAIN
ROLLBACK AND CHAIN
SAVEPOINT a ;; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
SAVEPOINT a ;; SET TRANSACTION DEFERRABLE
SELECT 1 ;; SET TRANSACTION NOT DEFERRABLE
SET TRANSACTION READ ONLY ;; SELECT 1 ;; SET TRANSACTION READ WRITE
SET TRANSACTION READ ONLY ;; SAVEPOINT a ;; SET TRANSACTION READ WRITE
SAVEPOINT a ;; DECLARE c CURSOR FOR SELECT 1 ;; ROLLBACK TO a ;; FETCH c
DECLARE c CURSOR FOR WITH x AS (DELETE FROM t RETURNING 1) SELECT * FROM x
DECLARE c SCROLL NO SCROLL CURSOR FOR SELECT 1
DECLARE c INSENSITIVE ASENSITIVE CURSOR FOR SELECT 1
DECLARE c SCROLL CURSOR FOR SELECT a FROM t FOR SHARE
DECLARE c INSENSITIVE CURSOR FOR SELECT a FROM t FOR UPDATE
DECLARE c CURSOR WITH HOLD FOR SELECT a FROM t FOR UPDATE
DECLARE c CURSOR FOR SELECT a INTO x FROM t
CREATE TABLE x AS SELECT 1 AS a INTO y
EXPLAIN (FORMAT nosuch) SELECT 1
EXPLAIN (WAL) SELECT 1
EXPLAIN (ANALYZE maybe) SELECT 1
EXPLAIN EXECUTE nosuch
CREATE TABLE x AS EXECUTE nosuch

-- on: both
-- A volatile expression of a subquery has one value for each of its rows,
-- however often it is used.
CREATE SEQUENCE sq;
CREATE TABLE t (a int PRIMARY KEY, b int);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
CREATE TABLE u (a uuid, b uuid);
SELECT x, x FROM (SELECT nextval('sq') x) q;
SELECT x + x AS twice FROM (SELECT nextval('sq') x FROM t) q ORDER BY 1;
SELECT last_value FROM sq;
INSERT INTO u SELECT x, x FROM (SELECT gen_random_uuid() x FROM generate_series(1, 3)) q;
SELECT a = b AS same FROM u;
SELECT count(*) FROM (SELECT DISTINCT a FROM u) d;
WITH q AS MATERIALIZED (SELECT random() r FROM generate_series(1, 1000)) SELECT count(*) FROM q WHERE r < 0.5 AND r > 0.5;
SELECT count(*) FROM (SELECT random() r FROM generate_series(1, 1000)) q WHERE r < 0.5 AND r > 0.5;
SELECT r FROM (SELECT random() r FROM generate_series(1, 1000)) q WHERE r < 0.5 AND r > 0.5;
SELECT count(*) FROM (SELECT random() + a r FROM t) q WHERE r < 2 AND r >= 2;
SELECT a - b AS none FROM (SELECT r a, r b FROM (SELECT random() r FROM generate_series(1, 3)) q) z;
SELECT sum(a - b) FROM (SELECT r a, r b FROM (SELECT random() r FROM generate_series(1, 10)) q) z;
SELECT max(r) = max(s) AS same FROM (SELECT r, r AS s FROM (SELECT random() r FROM t) q) z;
SELECT max(least(r, s)) FROM (SELECT 2 * r AS r, r + r AS s FROM (SELECT random() * 0 r FROM t) q) z;
SELECT count(*) FROM (SELECT random() r FROM generate_series(1, 10000) ORDER BY r LIMIT 10) q WHERE r > 0.5;
SELECT count(*) FROM (SELECT r, rank() OVER (ORDER BY r) k, max(r) OVER () m FROM (SELECT random() r FROM t) q) z WHERE k = 3 AND r <> m;
SELECT count(*) FROM (SELECT random() r, count(*) n FROM generate_series(1, 1000) GROUP BY 1) q WHERE r < 0.5 AND r > 0.5;
SELECT count(*) FROM (SELECT random()::numeric r, count(*) n FROM generate_series(1, 1000) GROUP BY 1) q WHERE r < 0.5 AND r > 0.5;
SELECT count(*) FROM (SELECT DISTINCT random() r FROM generate_series(1, 1000)) q WHERE r < 0.5 AND r > 0.5;
SELECT count(*) FROM (SELECT random() r FROM t UNION ALL SELECT random() FROM t) q WHERE r < 0.5 AND r > 0.5;
-- A WITH query is computed once for all its uses.
WITH q AS (SELECT a, random() r FROM t) SELECT count(*) FROM q x JOIN q y USING (a) WHERE x.r = y.r;
WITH q AS (SELECT random() r) SELECT x.r = y.r AS same FROM q x, q y;
WITH q AS (SELECT random() r FROM t) (TABLE q EXCEPT TABLE q) UNION ALL (TABLE q EXCEPT ALL TABLE q);
WITH q AS (SELECT nextval('sq') - lastval() AS zero) SELECT (SELECT zero FROM q) = (SELECT zero FROM q) AS same;
-- Neither do joins compute one again, nor the parts of an aggregate.
SELECT count(*) FROM (SELECT a, random() r FROM t) x JOIN generate_series(1, 5) g ON true GROUP BY a, r ORDER BY a;
SELECT count(*) FROM (SELECT a, random() r FROM t) x LEFT JOIN t y ON x.a = y.a AND x.r < 0.5 WHERE (x.r < 0.5) <> (y.a IS NOT NULL);
SELECT count(*) FROM t, LATERAL (SELECT r, r AS s FROM (SELECT random() * t.a AS r) q) l WHERE r <> s;
SELECT setval('sq', 100);
SELECT avg(nextval('sq')), 'x' AS x FROM t;
SELECT variance(nextval('sq')) FROM t;
SELECT last_value FROM sq;
SELECT sum(nextval('sq')) FILTER (WHERE a = 1) FROM t;
SELECT last_value FROM sq;
SELECT nextval('sq') IN (1, 2, 3) AS isin, nextval('sq') NOT IN (1, 2, 3, 4, 5, 6) AS notin;
SELECT random() IN (0.5, 2, NULL) AS isin, random()::text IN ('a', 'b') AS notin, random() IN (2) AS one;
SELECT last_value FROM sq;
CREATE TABLE w (a float8, b float8);
INSERT INTO w SELECT r, r FROM (SELECT random() r FROM t) q RETURNING a = b AS same;
UPDATE w SET a = r, b = r FROM (SELECT random() r) q;
SELECT a = b AS same FROM w;
-- A constant is NULL in the rows of grouping sets without it.
SELECT * FROM (SELECT 7 AS c0, sum(x) FROM (VALUES (1), (2)) v(x) GROUP BY GROUPING SETS ((1), ())) q ORDER BY c0;
SELECT * FROM (SELECT 0.1::numeric AS c, sum(x) FROM (VALUES (1), (2)) v(x) GROUP BY ROLLUP (0.1::numeric)) q ORDER BY c;
SELECT * FROM (SELECT 'Infinity'::float8 AS i, x, sum(x) FROM (VALUES (1), (2)) v(x) GROUP BY CUBE ('Infinity'::float8, x)) q ORDER BY i, x;
SELECT * FROM (SELECT 7 AS a, 7 AS b, sum(x) FROM (VALUES (1), (2)) v(x) GROUP BY GROUPING SETS ((1), (2))) q ORDER BY a;
SELECT * FROM (SELECT 7 AS a, 7 AS b, sum(x) FROM (VALUES (1), (2)) v(x) GROUP BY ROLLUP (1)) q ORDER BY a;
SELECT * FROM (SELECT 7 AS a, 7 AS b, grouping(7), sum(x) FROM (VALUES (1), (2)) v(x) GROUP BY GROUPING SETS ((1), (1, 2), (2), ())) q ORDER BY a, b, 3;
SELECT * FROM (SELECT x AS a, x AS b, x + 1 AS c, count(*) FROM (VALUES (1), (2)) v(x) GROUP BY GROUPING SETS ((1), (2))) q ORDER BY a, b;
SELECT * FROM (SELECT NULL AS a, 'b' AS b, sum(x) FROM (VALUES (1), (2)) v(x) GROUP BY ROLLUP (1, 2)) q ORDER BY b;
SELECT * FROM (SELECT true AS a, x, count(*), coalesce('k', 'l') AS k FROM (VALUES (1), (2)) v(x) GROUP BY CUBE (x), ROLLUP (1)) q ORDER BY a, x;
SELECT 7 AS a, sum(x) FROM (VALUES (1), (2)) v(x) GROUP BY GROUPING SETS ((1)) HAVING 7 IS NULL;
CREATE VIEW g AS SELECT 7 AS seven, b, count(*) AS n FROM t GROUP BY ROLLUP (1, 2);
SELECT * FROM g ORDER BY seven, b;

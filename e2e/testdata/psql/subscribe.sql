-- on: streamdb
-- SUBSCRIBE: a snapshot, then deltas, by a cursor and by COPY. The epochs are
-- of the moment, so cursors show them as they are compared.
CREATE TABLE t (k int PRIMARY KEY, v text);
CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM t GROUP BY v;
INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'b');
SUBSCRIBE nothing;
SUBSCRIBE (SELECT 1 / 0 AS x) UP TO 1;
DECLARE c CURSOR FOR SUBSCRIBE m;
COPY (SUBSCRIBE m WITH (SNAPSHOT = 1 2)) TO STDOUT;
BEGIN;
DECLARE c CURSOR FOR SUBSCRIBE m WITH (SNAPSHOT = false);
FETCH ALL c WITH (timeout = '20ms');
CLOSE c;
DECLARE c CURSOR FOR SUBSCRIBE (SELECT 1 AS one) UP TO 1;
COMMIT;

-- on: both
-- Tables: definitions and their changes, constraints, DML with RETURNING, COPY.
CREATE TABLE item (id bigint PRIMARY KEY, name text NOT NULL, price numeric(10,2) CHECK (price >= 0), tags text[], added timestamp DEFAULT '2024-01-01 00:00:00');
INSERT INTO item (id, name, price, tags) VALUES (1, 'pen', 1.5, '{blue,"two words"}'), (2, 'ink', 20, NULL), (3, 'cap', 3.456, '{}');
INSERT INTO item VALUES (4, 'nib', DEFAULT, ARRAY['x', NULL]) RETURNING *;
INSERT INTO item (name, id) SELECT 'made ' || g, g FROM generate_series(10, 12) g RETURNING id, name, price IS NULL AS free;
SELECT * FROM item ORDER BY id;
INSERT INTO item VALUES (1, 'again');
INSERT INTO item VALUES (5, NULL);
INSERT INTO item VALUES (5, 'x', -1);
INSERT INTO item VALUES (5, 'x', 'many');
INSERT INTO item (id, nam) VALUES (5, 'x');
INSERT INTO item VALUES (5, 'x', 1, NULL, now(), 6);
UPDATE item SET price = price * 2, name = upper(name) WHERE id < 3 RETURNING id, name, price;
UPDATE item SET id = id + 100 WHERE id >= 10;
UPDATE item SET price = f.p FROM (VALUES (101, 9.99), (110, 8)) f(i, p) WHERE item.id = f.i RETURNING item.id, price, f.p;
UPDATE item SET id = 1 WHERE id = 2;
UPDATE item SET nope = 1;
DELETE FROM item WHERE id = 111 RETURNING id AS gone, name;
DELETE FROM item USING (VALUES (112)) v(x) WHERE id = x;
SELECT id, name, price FROM item ORDER BY id;
ALTER TABLE item ADD COLUMN stock int DEFAULT 7;
ALTER TABLE item RENAME COLUMN name TO label;
ALTER TABLE item ALTER COLUMN label DROP NOT NULL;
ALTER TABLE item ALTER COLUMN stock SET DEFAULT 8;
INSERT INTO item (id) VALUES (6) RETURNING id, label, stock;
SELECT id, label, stock FROM item ORDER BY id;
ALTER TABLE item DROP COLUMN added;
ALTER TABLE item DROP COLUMN added;
ALTER TABLE item RENAME TO goods;
ALTER TABLE nothing RENAME TO something;
ALTER TABLE IF EXISTS nothing RENAME TO something;
SELECT * FROM item;
COPY goods FROM STDIN;
20	tab\there	1.25	{a,b}	1
21	\N	\N	\N	\N
22	back\\slash	0	{}	2
\.
COPY goods (id, label, price) FROM STDIN WITH (FORMAT csv, HEADER, NULL 'none');
id,label,price
30,"quo""ted, and
two lines",2.5
31,none,none
32,"none",1
\.
COPY goods (id, label) FROM STDIN WITH (DELIMITER '|');
40|piped
41|a\|b
\.
COPY goods (id, label) FROM STDIN;
50	fine
fifty	not fine
\.
SELECT id, label, price, tags, stock FROM goods WHERE id BETWEEN 20 AND 60 ORDER BY id;
COPY (SELECT id, label, price FROM goods WHERE id BETWEEN 20 AND 60 ORDER BY id) TO STDOUT;
COPY (SELECT id, label, price FROM goods WHERE id BETWEEN 20 AND 60 ORDER BY id) TO STDOUT WITH CSV HEADER;
COPY (SELECT id, label FROM goods WHERE id < 3 ORDER BY id) TO STDOUT (FORMAT csv, DELIMITER ';', FORCE_QUOTE *);
CREATE TABLE IF NOT EXISTS goods (a int);
CREATE TABLE goods (a int);
CREATE TABLE pair (a int, b int, c text, PRIMARY KEY (b, a), UNIQUE (c));
INSERT INTO pair VALUES (1, 1, 'x'), (1, 2, NULL), (2, 1, NULL);
INSERT INTO pair VALUES (1, 1, 'y');
INSERT INTO pair VALUES (3, 3, 'x');
INSERT INTO pair VALUES (NULL, 3, 'z');
CREATE TABLE copy_of AS SELECT id, label FROM goods WHERE id < 4;
SELECT * FROM copy_of ORDER BY id;
SELECT id INTO copy_2 FROM goods WHERE id = 4;
TABLE copy_2;
TRUNCATE pair, copy_of;
SELECT (SELECT count(*) FROM pair), (SELECT count(*) FROM copy_of);
TRUNCATE nowhere;
DROP TABLE copy_2, copy_of;
DROP TABLE copy_2;
DROP TABLE IF EXISTS copy_2;
DROP VIEW goods;
INSERT INTO pair SELECT g, g % 3, 'c' || g FROM generate_series(1, 6) g;
WITH gone AS (SELECT a FROM pair WHERE b = 0) DELETE FROM pair WHERE a IN (SELECT a FROM gone) RETURNING *;
UPDATE pair SET c = (SELECT max(label) FROM goods WHERE id = pair.a);
SELECT a, c FROM pair ORDER BY a;
DELETE FROM pair;

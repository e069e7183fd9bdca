CREATE TABLE vd (a int, b int);
INSERT INTO vd VALUES (2, 1), (1, 3), (2, 0), (1, 2), (3, 9);
CREATE SEQUENCE vn;
SELECT DISTINCT ON (a) a, b, nextval('vn') FROM vd ORDER BY a, b;
SELECT currval('vn');
SELECT DISTINCT ON (a) a, b, nextval('vn') FROM vd ORDER BY a DESC, b DESC LIMIT 2;
SELECT currval('vn');
SELECT DISTINCT nextval('vn') FROM vd;
SELECT DISTINCT a, nextval('vn') - nextval('vn') FROM vd ORDER BY a;

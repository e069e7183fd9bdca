-- Schemas of the search path that do not exist are passed over.
SET search_path = nosuch;
SELECT current_schema, current_schema(), current_schemas(false);
SHOW search_path;
CREATE TABLE nowhere (a int);
SET search_path = nosuch, pg_catalog;
SELECT current_schema, current_schemas(false);
SET search_path = '';
SELECT current_schema IS NULL, current_schemas(false);
SET search_path = later;
SELECT current_schema;
CREATE SCHEMA later;
SELECT current_schema, current_schemas(false);
CREATE TABLE here (a int);
SELECT a FROM later.here;
DROP SCHEMA later CASCADE;
SELECT current_schema;

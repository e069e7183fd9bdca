-- What the catalogs say of the objects of objects.sql, by names instead of OIDs.
-- Each query follows a line with its name; parentheses that only PostgreSQL writes are taken
-- out of expressions.

-- query pg_class
SELECT relname, relkind, (SELECT amname FROM pg_am WHERE oid=relam) am, relhasindex, relisshared, relpersistence, relnatts, relchecks, relhasrules,
relhastriggers, relhassubclass, relrowsecurity, relforcerowsecurity, relispopulated, relreplident, relispartition, reltype<>0 has_type, reloftype,
reltablespace, relrewrite, relacl, reloptions, relpartbound, (SELECT rolname FROM pg_roles r WHERE r.oid=relowner) FROM pg_class WHERE
relnamespace='cmp'::regnamespace AND relkind<>'t';

-- query pg_attribute
SELECT c.relname, attname, format_type(atttypid,atttypmod), attstattarget, attlen, attnum, attndims, attcacheoff, atttypmod, attbyval, attalign,
attstorage, attcompression='' ac, attnotnull, atthasdef, atthasmissing, attidentity, attgenerated, attisdropped, attislocal, attinhcount, (select
collname from pg_collation l where l.oid=attcollation) coll, attacl, attoptions, attfdwoptions, attmissingval FROM pg_attribute a JOIN pg_class c ON
c.oid=attrelid WHERE relnamespace='cmp'::regnamespace AND relkind<>'t' AND attnum>0;

-- query pg_attrdef
SELECT adrelid::regclass, attname, regexp_replace(pg_get_expr(adbin,adrelid), '[()]', '', 'g') FROM pg_attrdef d JOIN pg_attribute a ON
attrelid=adrelid AND attnum=adnum WHERE adrelid IN (SELECT oid FROM pg_class WHERE relnamespace='cmp'::regnamespace AND relkind<>'t');

-- query pg_index
SELECT indexrelid::regclass, indrelid::regclass, indnatts, indnkeyatts, indisunique, indnullsnotdistinct, indisprimary, indisexclusion, indimmediate,
indisclustered, indisvalid, indcheckxmin, indisready, indislive, indisreplident, indkey, (select array_agg(c.collname order by o) from
unnest(indcollation::oid[]) with ordinality x(i,o) left join pg_collation c on c.oid=i) coll, (select array_agg(c.opcname order by o) from
unnest(indclass::oid[]) with ordinality x(i,o) left join pg_opclass c on c.oid=i) cls, indoption, regexp_replace(pg_get_expr(indexprs,indrelid),
'[()]', '', 'g'), regexp_replace(pg_get_expr(indpred,indrelid), '[()]', '', 'g') FROM pg_index WHERE indrelid IN (SELECT oid FROM pg_class WHERE
relnamespace='cmp'::regnamespace AND relkind<>'t');

-- query pg_constraint
SELECT conname, contype, condeferrable, condeferred, convalidated, conrelid::regclass, contypid::regtype, conindid::regclass, conparentid,
confrelid::regclass, confupdtype, confdeltype, confmatchtype, conislocal, coninhcount, connoinherit, conkey, confkey, conpfeqop::regoperator[],
conppeqop::regoperator[], conffeqop::regoperator[], confdelsetcols, conexclop, regexp_replace(pg_get_expr(conbin,conrelid), '[()]', '', 'g'),
regexp_replace(pg_get_constraintdef(oid), '[()]', '', 'g'), regexp_replace(pg_get_constraintdef(oid,true), '[()]', '', 'g') FROM pg_constraint WHERE
connamespace='cmp'::regnamespace;

-- query pg_type
SELECT typname, nspname, typlen, typbyval, typtype, typcategory, typispreferred, typisdefined, typdelim, typrelid::regclass, typsubscript,
typelem::regtype, typarray::regtype, typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze, typalign, typstorage, typnotnull,
typbasetype::regtype, typtypmod, typndims, (select collname from pg_collation l where l.oid=typcollation) coll, pg_get_expr(typdefaultbin,0),
typdefault, typacl FROM pg_type t JOIN pg_namespace n ON n.oid=typnamespace WHERE nspname='cmp';

-- query pg_type builtin
SELECT CASE WHEN t.oid<10000 THEN t.oid END, typname, nspname, typlen, typbyval, typtype, typcategory, typispreferred, typisdefined, typdelim,
typrelid::regclass, typsubscript, typelem::regtype, typarray::regtype, typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze,
typalign, typstorage, typnotnull, typbasetype::regtype, typtypmod, typndims, (select collname from pg_collation l where l.oid=typcollation) coll,
NULL,NULL, typacl FROM pg_type t JOIN pg_namespace n ON n.oid=typnamespace WHERE nspname IN ('pg_catalog','information_schema') AND (typrelid=0 AND
t.oid NOT IN (SELECT typarray FROM pg_type WHERE typrelid<>0));

-- query pg_proc
SELECT proname, (select lanname from pg_language l where l.oid=prolang) lang, procost, prorows, provariadic::regtype, prosupport, prokind, prosecdef,
proleakproof, proisstrict, proretset, provolatile, proparallel, pronargs, pronargdefaults, prorettype::regtype, proargtypes::regtype[],
proallargtypes::regtype[], proargmodes, proargnames, pg_get_expr(proargdefaults,0), protrftypes, prosrc, probin, proconfig, proacl,
p.oid::regprocedure, p.oid::regproc, pg_get_function_arguments(p.oid), pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid),
pg_get_functiondef(p.oid), pg_get_function_arg_default(p.oid,1), pg_get_function_arg_default(p.oid,2),pg_get_function_arg_default(p.oid,3) FROM
pg_proc p WHERE pronamespace='cmp'::regnamespace;

-- query pg_description
SELECT classoid::regclass, objsubid, description, pg_describe_object(classoid,objoid,objsubid) FROM pg_description WHERE description LIKE 'x:%';

-- query pg_depend
SELECT DISTINCT pg_describe_object(classid,objid,objsubid) a, pg_describe_object(refclassid,refobjid,refobjsubid) b, deptype FROM pg_depend WHERE
(classid,objid) IN (SELECT 'pg_class'::regclass, oid FROM pg_class WHERE relnamespace='cmp'::regnamespace UNION SELECT 'pg_type'::regclass, oid FROM
pg_type WHERE typnamespace='cmp'::regnamespace UNION SELECT 'pg_constraint'::regclass, oid FROM pg_constraint WHERE connamespace='cmp'::regnamespace
UNION SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid IN (SELECT oid FROM pg_class WHERE relnamespace='cmp'::regnamespace) UNION
SELECT 'pg_rewrite'::regclass, oid FROM pg_rewrite WHERE ev_class IN (SELECT oid FROM pg_class WHERE relnamespace='cmp'::regnamespace) UNION SELECT
'pg_proc'::regclass, oid FROM pg_proc WHERE pronamespace='cmp'::regnamespace UNION SELECT 'pg_trigger'::regclass, oid FROM pg_trigger WHERE tgrelid IN
(SELECT oid FROM pg_class WHERE relnamespace='cmp'::regnamespace)) AND refclassid<>'pg_collation'::regclass AND
pg_describe_object(refclassid,refobjid,refobjsubid) !~ 'toast';

-- query pg_identify
SELECT (pg_identify_object(classid,objid,objsubid)).* FROM (SELECT 'pg_class'::regclass classid, oid objid, 0 objsubid FROM pg_class WHERE
relnamespace='cmp'::regnamespace AND relkind<>'t' UNION SELECT 'pg_type'::regclass, oid, 0 FROM pg_type WHERE typnamespace='cmp'::regnamespace UNION
SELECT 'pg_constraint'::regclass, oid, 0 FROM pg_constraint WHERE connamespace='cmp'::regnamespace UNION SELECT 'pg_proc'::regclass, oid, 0 FROM
pg_proc WHERE pronamespace='cmp'::regnamespace) x;

-- query pg_enum
SELECT enumtypid::regtype, enumsortorder, enumlabel FROM pg_enum
WHERE enumtypid IN (SELECT oid FROM pg_type WHERE typnamespace = 'cmp'::regnamespace);

-- query pg_range
SELECT rngtypid::regtype, rngsubtype::regtype, rngmultitypid::regtype, (select opcname from pg_opclass o where o.oid=rngsubopc), rngcanonical,
rngsubdiff, (select collname from pg_collation l where l.oid=rngcollation) FROM pg_range
WHERE rngtypid < 10000 OR rngtypid IN (SELECT oid FROM pg_type WHERE typnamespace = 'cmp'::regnamespace);

-- query pg_sequence
SELECT seqrelid::regclass, seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle, pg_sequence_last_value(seqrelid) FROM
pg_sequence WHERE seqrelid IN (SELECT oid FROM pg_class WHERE relnamespace='cmp'::regnamespace AND relkind<>'t');

-- query pg_sequences
SELECT * FROM pg_sequences WHERE schemaname='cmp';

-- query pg_tables
SELECT * FROM pg_tables WHERE schemaname='cmp';

-- query pg_views
SELECT schemaname, viewname, viewowner FROM pg_views WHERE schemaname='cmp';

-- query pg_matviews
SELECT schemaname, matviewname, matviewowner, tablespace, hasindexes, ispopulated FROM pg_matviews WHERE schemaname='cmp';

-- query pg_indexes
SELECT schemaname, tablename, indexname, tablespace, regexp_replace(indexdef, '[()]', '', 'g') FROM pg_indexes WHERE schemaname = 'cmp';

-- query pg_rules
SELECT schemaname, tablename, rulename FROM pg_rules WHERE schemaname='cmp';

-- query pg_policies
SELECT * FROM pg_policies WHERE schemaname='cmp';

-- query pg_rewrite
SELECT rulename, ev_class::regclass, ev_type, ev_enabled, is_instead FROM pg_rewrite WHERE ev_class IN (SELECT oid FROM pg_class WHERE
relnamespace='cmp'::regnamespace AND relkind<>'t');

-- query pg_trigger
SELECT regexp_replace(tgname,'[0-9]+','N'), tgrelid::regclass, tgfoid::regproc, tgtype, tgenabled, tgisinternal, tgconstrrelid::regclass,
tgconstrindid::regclass, (SELECT conname FROM pg_constraint c WHERE c.oid=tgconstraint), tgdeferrable, tginitdeferred, tgnargs, tgattr, tgargs,
pg_get_expr(tgqual,tgrelid) FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace='cmp'::regnamespace AND relkind<>'t');

-- query pg_namespace
SELECT nspname, (SELECT rolname FROM pg_roles r WHERE r.oid=nspowner), nspacl FROM pg_namespace WHERE nspname='cmp';

-- query indexdef
SELECT indexrelid::regclass, pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid,0,true),
pg_get_indexdef(indexrelid,1,true), pg_get_indexdef(indexrelid,1,false), pg_get_indexdef(indexrelid,2,true),
pg_get_indexdef(indexrelid,2,false), pg_get_indexdef(indexrelid,3,true) FROM pg_index WHERE indrelid IN (SELECT oid FROM pg_class WHERE
relnamespace='cmp'::regnamespace AND relkind<>'t');

-- query format
SELECT t::regtype, m, format_type(t,m) FROM (SELECT oid t FROM pg_type WHERE oid<10000 UNION SELECT oid FROM pg_type WHERE
typnamespace='cmp'::regnamespace) x, (VALUES (NULL::int),(-1),(5),(7),(655366)) y(m) WHERE t<>ALL(ARRAY[1186,1187,1560,1561]);

-- query serial
SELECT c.relname, attname, pg_get_serial_sequence('cmp.'||c.relname, attname) FROM pg_attribute a JOIN pg_class c ON c.oid=attrelid WHERE
c.relkind='r' AND c.relnamespace='cmp'::regnamespace AND attnum>0;

-- query descr
SELECT c.relname, obj_description(c.oid,'pg_class'), obj_description(c.oid), attname, col_description(c.oid,attnum) FROM pg_attribute a JOIN pg_class
c ON c.oid=attrelid WHERE c.relkind<>'t' AND c.relnamespace='cmp'::regnamespace AND attnum>0;

-- query upd
SELECT c.relname, pg_relation_is_updatable(c.oid,true), pg_relation_is_updatable(c.oid,false), attname, pg_column_is_updatable(c.oid,attnum,true),
pg_column_is_updatable(c.oid,attnum,false) FROM pg_attribute a JOIN pg_class c ON c.oid=attrelid WHERE c.relkind<>'t' AND
c.relnamespace='cmp'::regnamespace AND attnum>0;

-- query triggerdef
SELECT regexp_replace(pg_get_triggerdef(oid),'[0-9]+','N'), regexp_replace(pg_get_triggerdef(oid,true),'[0-9]+','N') FROM pg_trigger WHERE tgrelid IN
(SELECT oid FROM pg_class WHERE relnamespace='cmp'::regnamespace AND relkind<>'t');

-- query system columns
SELECT c.relname, attname, format_type(atttypid,atttypmod), attlen, attnum, attbyval, attalign, attstorage, attnotnull FROM pg_attribute a JOIN
pg_class c ON c.oid=attrelid WHERE relname IN ('customers','v','mv','sq','oi') AND relnamespace='cmp'::regnamespace AND attnum<0;

-- query types of system columns
SELECT tableoid::regclass, pg_typeof(xmin), pg_typeof(xmax), pg_typeof(cmin), pg_typeof(cmax), pg_typeof(tableoid) FROM pg_class WHERE oid=1259;

-- query privileges
SELECT c.relname, has_table_privilege(c.oid,'SELECT'), has_table_privilege(c.oid::regclass::text,'INSERT, UPDATE'),
has_table_privilege(current_user,c.oid,'DELETE'), has_any_column_privilege(c.oid,'SELECT'), CASE WHEN relkind='S' THEN
has_sequence_privilege(c.oid,'USAGE') END FROM pg_class c WHERE c.relnamespace='cmp'::regnamespace AND relkind IN ('r','v','m','S');

-- query privileges of others
SELECT has_schema_privilege('cmp','USAGE'), has_schema_privilege(current_user,'cmp'::regnamespace,'CREATE'),
has_function_privilege('nul(text)','EXECUTE'), has_function_privilege(current_user,'nul(text)'::regprocedure,'EXECUTE'),
has_type_privilege('mood','USAGE'), has_type_privilege(current_user,'mood'::regtype,'USAGE'), has_language_privilege('sql','USAGE'),
has_database_privilege(current_database(),'CONNECT, TEMP'), has_column_privilege('orders','qty','SELECT'),
has_column_privilege('orders',5::int2,'UPDATE'), has_column_privilege(current_user,'orders'::regclass,'qty','INSERT'),
pg_has_role(current_user,'MEMBER');

-- query descriptions of others
SELECT pg_describe_object('pg_namespace'::regclass,'cmp'::regnamespace,0), pg_describe_object('pg_language'::regclass,14,0),
pg_describe_object('pg_am'::regclass,403,0), pg_describe_object('pg_operator'::regclass,96,0), pg_describe_object('pg_collation'::regclass,100,0),
pg_describe_object('pg_tablespace'::regclass,1663,0), pg_describe_object('pg_class'::regclass,999999,0),
pg_describe_object('pg_type'::regclass,1043,0), pg_describe_object('pg_class'::regclass,'orders'::regclass,3),
pg_describe_object('pg_class'::regclass,'v'::regclass,1);

-- query identities of others
SELECT (pg_identify_object(c, o, s)).* FROM (VALUES ('pg_class'::regclass,'orders'::regclass::oid,3), ('pg_class'::regclass,'v'::regclass,1),
('pg_class'::regclass,'pair'::regclass,1), ('pg_namespace'::regclass,'cmp'::regnamespace,0), ('pg_type'::regclass,1043,0),
('pg_type'::regclass,1009,0)) x(c, o, s);

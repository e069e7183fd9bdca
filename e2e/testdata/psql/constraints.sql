-- on: both
-- Savepoints with constraints, unique indexes, keys of other types, sequences of defaults, generated columns.
create table a (x int primary key, y int);
insert into a values (1,1);
create view va as select x from a;
alter table a drop column y;
insert into a values (2);
select * from va order by 1;
begin; alter table a add column z int default 3; insert into a values (3,4); rollback; select * from a order by 1;
begin; create table b (q int unique); insert into b values (1); savepoint s; insert into b values (1); rollback to s; insert into b values (2); commit; select * from b order by 1;
insert into b values (null),(null);
create unique index bi on b (q) nulls not distinct;
delete from b where q is null; create unique index bi on b (q) nulls not distinct; insert into b values (null); insert into b values (null);
drop index bi; insert into b values (null);
create table e (n numeric primary key, t text); insert into e values (1.0,'a'),(2,'b'); insert into e values (1.00,'c');
insert into e values (1.000,'z') on conflict (n) do update set t = excluded.t returning *;
update e set n = 5 where n = 2; select * from e order by n;
alter table e alter column n type int; insert into e values (1,'q'); alter table e alter column n type numeric; insert into e values (1.0,'q');
insert into e select g, 'g' from generate_series(10, 12) g on conflict do nothing;
select count(*) from e;
create table sel (id int primary key, parent int references sel on delete cascade); insert into sel values (1,null),(2,1),(3,2),(4,2); insert into sel values (9,10); delete from sel where id = 2; select * from sel order by 1; insert into sel values (20, 21), (21, 20); delete from sel; select count(*) from sel;
create table u1 (a int, b int, unique (a, b)); insert into u1 values (1,null),(1,null); insert into u1 values (1,2); insert into u1 values (1,2);
update u1 set b = 2 where b is null; 
create sequence q1; create table uq (id int default nextval('q1'), v text); insert into uq (v) values ('a'),('b') returning id; alter sequence q1 restart with 100; insert into uq (v) values ('c') returning id; drop sequence q1; alter sequence q1 rename to q2; insert into uq (v) values ('d') returning id; alter sequence q2 owned by uq.id; drop table uq; select 1 from pg_class where relname = 'q2';
create table gx (a int, b int generated always as (a + c) stored, c int default 2); insert into gx (a) values (1) returning *; insert into gx values (1, default, 5) returning *; alter table gx drop column a; alter table gx drop column a cascade; select * from gx order by 1;
insert into gx values (1, 2);
create table s1 (id serial primary key, v int); insert into s1 (v) values (1);
drop sequence s1_id_seq; drop sequence s1_id_seq cascade; select * from s1; insert into s1 (v) values (2); \d s1
drop table s1;

#!/usr/bin/env bash
# Installs, starts and stops what the tests talk to: a PostgreSQL with logical
# replication, an Apache Kafka broker (KRaft) and a Confluent-compatible schema
# registry (Apicurio). All listen on spare loopback ports.
#
#   scripts/services.sh up      start what is not running; prints nothing on success
#   scripts/services.sh env     print the STREAMDB_TEST_* variables as shell exports
#   scripts/services.sh down    stop everything and remove its data
#
# State lives in .run, downloads in .deps (both beside go.mod, ignored by git).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
deps=$root/.deps
run=$root/.run
registry_version=3.0.9

log() { echo "services: $*" >&2; }

as_root_install() { # package...
  if [ "$(id -u)" = 0 ]; then
    log "installing $*"
    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@") >"$run/apt.log" 2>&1 || { tail -20 "$run/apt.log" >&2; return 1; }
  else
    log "missing: $* (install them, or run as root)"
    return 1
  fi
}

pg_bin() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1; }

free_port() {
  python3 - <<'P' 2>/dev/null || perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen=>1,LocalAddr=>"127.0.0.1",LocalPort=>0)->sockport'
import socket
s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])
P
}

wait_for() { # name seconds command...
  local name=$1 n=$2; shift 2
  for _ in $(seq 1 $((n * 5))); do "$@" >/dev/null 2>&1 && return 0; sleep 0.2; done
  log "$name did not come up; its log is in $run"
  return 1
}

tcp_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
alive() { [ -s "$run/$1.pid" ] && kill -0 "$(cat "$run/$1.pid")" 2>/dev/null; }

# PostgreSQL refuses to run as root: use its own account there.
pg_as() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

start_postgres() {
  [ -n "$(pg_bin)" ] || as_root_install postgresql postgresql-client
  local bin dir=$run/pg; bin=$(pg_bin)
  if [ -s "$run/pg.port" ] && tcp_open "$(cat "$run/pg.port")"; then return; fi
  rm -rf "$dir"; mkdir -p "$dir"
  [ "$(id -u)" = 0 ] && { chown postgres "$dir"; chmod 755 "$run"; }
  # The account of the server must be able to reach the directory.
  local data=$dir/data
  if [ "$(id -u)" = 0 ] && ! pg_as test -x "$run"; then
    data=$(mktemp -d /tmp/streamdb-test-pg.XXXXXX); chown postgres "$data"; echo "$data" >"$run/pg.data"
    data=$data/data
  fi
  pg_as "$bin/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale=C --lc-ctype=C.UTF-8 >"$run/initdb.log" 2>&1
  local port; port=$(free_port)
  cat >>"$data/postgresql.conf" <<C
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
wal_level = logical
max_wal_senders = 30
max_replication_slots = 30
max_connections = 200
fsync = off
timezone = 'UTC'
C
  pg_as "$bin/pg_ctl" -D "$data" -l "$(dirname "$data")/log" -w start >"$run/pg_ctl.log" 2>&1 9>&- || { cat "$run/pg_ctl.log" >&2; return 1; }
  echo "$port" >"$run/pg.port"; echo "$data" >"$run/pg.datadir"
}

need_java() {
  command -v java >/dev/null || as_root_install openjdk-17-jre-headless
}

need_mvn() {
  command -v mvn >/dev/null || as_root_install maven
}

start_kafka() {
  alive kafka && return
  need_java
  if [ ! -f "$deps/kafka/.complete" ]; then
    need_mvn; log "fetching Apache Kafka"
    mkdir -p "$deps/kafka"
    mvn -q -B -f scripts/kafka/pom.xml dependency:copy-dependencies -DoutputDirectory="$deps/kafka" >"$run/mvn.log" 2>&1 || { tail -20 "$run/mvn.log" >&2; return 1; }
    touch "$deps/kafka/.complete"
  fi
  local port ctl; port=$(cat "$run/kafka.port" 2>/dev/null || free_port); ctl=$(free_port)
  mkdir -p "$run/kafka"
  cat >"$run/kafka/server.properties" <<C
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$ctl
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$ctl
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
log.dirs=$run/kafka/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
message.max.bytes=8388608
C
  cat >"$run/kafka/log4j2.yaml" <<'C'
Configuration:
  status: WARN
  Appenders:
    Console: { name: C, PatternLayout: { pattern: "%d %p %m%n" } }
  Loggers:
    Root: { level: WARN, AppenderRef: { ref: C } }
C
  if [ ! -d "$run/kafka/data" ]; then
    java -cp "$deps/kafka/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$run/kafka/server.properties" >"$run/kafka/format.log" 2>&1
  fi
  setsid nohup java -Xmx384m -Dlog4j2.configurationFile="$run/kafka/log4j2.yaml" -cp "$deps/kafka/*" kafka.Kafka "$run/kafka/server.properties" >>"$run/kafka.log" 2>&1 </dev/null 9>&- &
  echo $! >"$run/kafka.pid"
  echo "$port" >"$run/kafka.port"
  wait_for kafka 60 tcp_open "$port"
}

start_registry() {
  alive registry && return
  need_java
  local dir=$deps/registry-$registry_version
  if [ ! -f "$dir/.complete" ]; then
    need_mvn; log "fetching the schema registry"
    mvn -q -B dependency:get -Dartifact=io.apicurio:apicurio-registry-app:$registry_version:tar.gz:all -Dtransitive=false >"$run/mvn-registry.log" 2>&1 || { tail -20 "$run/mvn-registry.log" >&2; return 1; }
    mvn -q -B dependency:copy -Dartifact=io.apicurio:apicurio-registry-app:$registry_version:tar.gz:all -DoutputDirectory="$deps" >>"$run/mvn-registry.log" 2>&1 || { tail -20 "$run/mvn-registry.log" >&2; return 1; }
    mkdir -p "$dir"; tar xzf "$deps/apicurio-registry-app-$registry_version-all.tar.gz" -C "$dir"
    rm -f "$deps/apicurio-registry-app-$registry_version-all.tar.gz"; touch "$dir/.complete"
  fi
  local port; port=$(free_port)
  QUARKUS_HTTP_HOST=127.0.0.1 QUARKUS_HTTP_PORT=$port setsid nohup java -Xmx384m -jar "$dir"/*runner.jar >"$run/registry.log" 2>&1 </dev/null 9>&- &
  echo $! >"$run/registry.pid"
  echo "$port" >"$run/registry.port"
}

registry_ready() { curl -fs "http://127.0.0.1:$(cat "$run/registry.port")/apis/ccompat/v7/subjects"; }

up() {
  mkdir -p "$run" "$deps"
  exec 9>"$run/lock"; flock 9 # the servers must not inherit it (9>&-)
  start_registry
  start_postgres
  start_kafka
  wait_for "the schema registry" 90 registry_ready
}

env_vars() {
  [ -s "$run/pg.port" ] && echo "export STREAMDB_TEST_PG_DSN='postgres://postgres@127.0.0.1:$(cat "$run/pg.port")/postgres?sslmode=disable'"
  [ -s "$run/kafka.port" ] && echo "export STREAMDB_TEST_KAFKA='127.0.0.1:$(cat "$run/kafka.port")'"
  [ -s "$run/registry.port" ] && echo "export STREAMDB_TEST_REGISTRY='http://127.0.0.1:$(cat "$run/registry.port")/apis/ccompat/v7'"
  return 0
}

stop_pid() {
  alive "$1" || return 0
  local p; p=$(cat "$run/$1.pid"); kill "$p" 2>/dev/null || true
  for _ in $(seq 1 50); do kill -0 "$p" 2>/dev/null || return 0; sleep 0.1; done
  kill -9 "$p" 2>/dev/null || true
}

down() {
  [ -d "$run" ] || return 0
  stop_pid kafka; stop_pid registry
  if [ -s "$run/pg.datadir" ]; then
    pg_as "$(pg_bin)/pg_ctl" -D "$(cat "$run/pg.datadir")" -m immediate stop >/dev/null 2>&1 || true
    [ -s "$run/pg.data" ] && rm -rf "$(cat "$run/pg.data")"
  fi
  rm -rf "$run"
}

case "${1:-}" in
up) up ;;
env) env_vars ;;
down) down ;;
restart-kafka) stop_pid kafka; rm -f "$run/kafka.pid"; start_kafka ;;
stop-kafka) stop_pid kafka ;;
*) sed -n '2,10p' "$0"; exit 2 ;;
esac

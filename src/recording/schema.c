/*
 * The tables of a recording. doc/recording.md explains every column; change both together, and
 * raise DB_VERSION where an older reader would misread what is new.
 */
#include "recording/db.h"

/* clang-format off */
const char db_schema[] =
"CREATE TABLE run(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
"CREATE TABLE entity(id INTEGER PRIMARY KEY, kind TEXT, parent INT, name TEXT, key INT, t0 INT, t1 INT,"
	" attrs TEXT);"
"CREATE TABLE metric(id INTEGER PRIMARY KEY, name TEXT, unit TEXT, kind TEXT, type TEXT, help TEXT);"
"CREATE TABLE series(id INTEGER PRIMARY KEY, entity INT, metric INT, source TEXT, batch0 INT, batch1 INT);"
"CREATE TABLE batch(id INTEGER PRIMARY KEY, t0 INT, t1 INT, n INT, times BLOB);"
"CREATE TABLE chunk(id INTEGER PRIMARY KEY, n INT, t0 INT, t1 INT, min, max, sum, first, last, data BLOB);"
"CREATE TABLE tail(id INTEGER PRIMARY KEY, batch INT, data BLOB);"
"CREATE TABLE gap(id INTEGER PRIMARY KEY, series INT, t0 INT, t1 INT, reason TEXT);"
"CREATE TABLE track(id INTEGER PRIMARY KEY, entity INT, name TEXT, columns TEXT);"
"CREATE TABLE event(id INTEGER PRIMARY KEY, track INT, n INT, t0 INT, t1 INT, data BLOB);"
"CREATE TABLE string(id INTEGER PRIMARY KEY, text TEXT);"
"CREATE TABLE notice(id INTEGER PRIMARY KEY, t INT, entity INT, kind TEXT, text TEXT, attrs TEXT);"
"CREATE TABLE finding(id INTEGER PRIMARY KEY, finding TEXT, severity TEXT, text TEXT, evidence TEXT,"
	" advice TEXT);"
"CREATE TABLE clock(mono INTEGER PRIMARY KEY, real INT);"
"CREATE TABLE change(id INTEGER PRIMARY KEY, what TEXT, row INT);"
/* For the curious: a chunk beside the names of what it measures. */
"CREATE VIEW chunks AS SELECT c.id >> 32 AS batch, s.id AS series, e.kind AS entity, e.name AS name,"
	" m.name AS metric, m.unit AS unit, c.n, coalesce(c.t0, b.t0) AS t0, coalesce(c.t1, b.t1) AS t1,"
	" c.min, c.max, c.sum, c.first, c.last, length(c.data) AS bytes"
	" FROM chunk c JOIN batch b ON b.id = c.id >> 32 JOIN series s ON s.id = c.id & 4294967295"
	" JOIN entity e ON e.id = s.entity JOIN metric m ON m.id = s.metric;";
/* clang-format on */

package pgcatalog

import (
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Reader answers the catalog functions of SQL and resolves the text forms of
// reg* types for one session.
type Reader struct{ env Env }

// NewReader makes the reader of a session's catalog.
func NewReader(env Env) *Reader { return &Reader{env} }

// Call runs a catalog function.
func (r *Reader) Call(name string, args []string) (string, bool, error) {
	return "", true, pgerror.New(pgerror.FeatureNotSupported, "function %s is not supported", name)
}

// RegName is the text form of an OID of a reg* type.
func (r *Reader) RegName(t types.OID, oid uint32) (string, bool) { return "", false }

// RegOID finds the object that name denotes for a reg* type.
func (r *Reader) RegOID(t types.OID, name string) (uint32, error) {
	return 0, pgerror.New(pgerror.UndefinedTable, "relation \"%s\" does not exist", name)
}

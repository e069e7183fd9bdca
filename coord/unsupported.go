package coord

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// What to do instead of what is not there.
const (
	hintOwner     = "There is one owner of everything; who may connect is decided before a session begins."
	hintTriggers  = "A materialized view is kept up to date by itself; SUBSCRIBE tells a program of changes."
	hintBuiltIn   = "What is there is built in; see the list of functions in the documentation."
	hintLanguage  = "Write the function in LANGUAGE sql."
	hintInherits  = "Make a view of the UNION ALL of the tables."
	hintPartition = "A table needs no partitions: its rows are kept by key in any case."
	hintSource    = "Read foreign data by CREATE SOURCE."
)

// absentFeature names the feature of a statement that is not there, and says what
// to do instead.
func absentFeature(st *pg.Node) (what, hint string) {
	switch n := st.Node.(type) {
	case *pg.Node_CreateStmt:
		return absentOfTable(n.CreateStmt)
	case *pg.Node_CreateTrigStmt:
		return "CREATE TRIGGER", hintTriggers
	case *pg.Node_CreateEventTrigStmt, *pg.Node_AlterEventTrigStmt:
		return "an event trigger", hintTriggers
	case *pg.Node_RuleStmt:
		return "CREATE RULE", "A simple view takes INSERT, UPDATE and DELETE as it is."
	case *pg.Node_CreatePolicyStmt, *pg.Node_AlterPolicyStmt:
		return "row-level security", hintOwner
	case *pg.Node_CreateRoleStmt, *pg.Node_AlterRoleStmt, *pg.Node_AlterRoleSetStmt, *pg.Node_DropRoleStmt, *pg.Node_GrantRoleStmt:
		return "a role", hintOwner
	case *pg.Node_AlterExtensionStmt, *pg.Node_AlterExtensionContentsStmt:
		return "an extension", hintBuiltIn
	case *pg.Node_CreatePlangStmt:
		return "CREATE LANGUAGE", hintLanguage
	case *pg.Node_CreateFdwStmt, *pg.Node_AlterFdwStmt, *pg.Node_CreateForeignServerStmt, *pg.Node_AlterForeignServerStmt,
		*pg.Node_CreateForeignTableStmt, *pg.Node_ImportForeignSchemaStmt, *pg.Node_CreateUserMappingStmt:
		return "foreign data", hintSource
	case *pg.Node_CreatePublicationStmt, *pg.Node_AlterPublicationStmt, *pg.Node_CreateSubscriptionStmt, *pg.Node_AlterSubscriptionStmt, *pg.Node_DropSubscriptionStmt:
		return "logical replication", "Replicate a PostgreSQL publication by CREATE SOURCE; SUBSCRIBE tells of changes."
	case *pg.Node_CreatedbStmt, *pg.Node_DropdbStmt, *pg.Node_AlterDatabaseStmt, *pg.Node_AlterDatabaseSetStmt:
		return "more than one database", "Use schemas."
	case *pg.Node_CreateTableSpaceStmt, *pg.Node_DropTableSpaceStmt:
		return "a tablespace", "Everything is in the data directory."
	case *pg.Node_CreateAmStmt, *pg.Node_CreateOpClassStmt, *pg.Node_CreateOpFamilyStmt, *pg.Node_AlterOpFamilyStmt:
		return "an access method", ""
	case *pg.Node_CreateStatsStmt, *pg.Node_AlterStatsStmt:
		return "CREATE STATISTICS", "The planner counts the rows itself."
	case *pg.Node_CreateCastStmt:
		return "CREATE CAST", ""
	case *pg.Node_CreateConversionStmt:
		return "CREATE CONVERSION", "Texts are in UTF-8."
	case *pg.Node_CreateTransformStmt:
		return "CREATE TRANSFORM", hintLanguage
	case *pg.Node_DefineStmt:
		return "CREATE " + kindWords(n.DefineStmt.Kind), ""
	case *pg.Node_DropStmt:
		return "DROP " + kindWords(n.DropStmt.RemoveType), ""
	case *pg.Node_RenameStmt:
		return "ALTER " + kindWords(n.RenameStmt.RenameType) + " ... RENAME", ""
	case *pg.Node_AlterObjectSchemaStmt:
		return "ALTER " + kindWords(n.AlterObjectSchemaStmt.ObjectType) + " ... SET SCHEMA", ""
	case *pg.Node_AlterOwnerStmt:
		return "ALTER " + kindWords(n.AlterOwnerStmt.ObjectType) + " ... OWNER TO", ""
	case *pg.Node_AlterSystemStmt:
		return "ALTER SYSTEM", "Settings of the server are flags of the command serve."
	case *pg.Node_LoadStmt:
		return "LOAD", hintBuiltIn
	case *pg.Node_SecLabelStmt:
		return "SECURITY LABEL", ""
	case *pg.Node_DoStmt:
		return "DO", "There is no procedural language; run the statements one after the other."
	}
	return statementName(st), ""
}

// kindWords is how a kind of objects is written.
func kindWords(k pg.ObjectType) string {
	return strings.ReplaceAll(strings.TrimPrefix(k.String(), "OBJECT_"), "_", " ")
}

// absentOfTable names what of a CREATE TABLE is not there.
func absentOfTable(n *pg.CreateStmt) (what, hint string) {
	switch {
	case n.Partspec != nil:
		return "PARTITION BY", hintPartition
	case n.Partbound != nil:
		return "PARTITION OF", hintPartition
	case len(n.InhRelations) > 0:
		return "INHERITS", hintInherits
	case n.OfTypename != nil:
		return "CREATE TABLE OF a type", "CREATE TABLE … (LIKE type) takes the attributes of a composite type as columns."
	}
	return "this form of CREATE TABLE", ""
}

// absent is the error of a statement that is not there.
func absent(st *pg.Node) error {
	what, hint := absentFeature(st)
	e := pgerror.Unsupported(what)
	if hint != "" {
		e = e.WithHint("%s", hint)
	}
	return e
}

// Package manifest is the table of looptape's verbs: their parameters with
// types and ranges, their results, their errors and the right each one needs.
//
// Everything that lists verbs is made from it: the checks of the wire, the
// commands and flags of the CLI, the MCP tools, the texts of package guide, the
// result of the verb manifest. A verb that is not in [Verbs] does not exist; nothing
// about a verb is written down twice.
//
// The package holds data and the check of a request against it. It knows no
// pane and no connection.
package manifest

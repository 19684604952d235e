// Package cli is looptape's command line.
//
// The commands of the verbs are made from the manifest: pane.capture_rows is
// "looptape pane capture-rows", each parameter a flag. They pass on what they
// are given and leave the checks to the daemon, obey LOOPTAPE_TOKEN, and print
// a result for a person, or with --json on one line as the daemon sent it.
//
// Beside them stand the commands for people, which act as the owner: serve,
// the daemon itself, and run, which starts a daemon when none runs.
//
// The package decides nothing about panes. Its exit codes are those of
// contract.md, section 3.
package cli

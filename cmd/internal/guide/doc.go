// Package guide makes the texts about looptape's verbs from the manifest: the
// skill text that agents read, the reference page, and the help of each command.
//
// What is written by hand, in skill.md, names only what the manifest has: the
// parts about verbs that do not exist yet are left out, and a test checks every
// name. The package knows no daemon.
package guide

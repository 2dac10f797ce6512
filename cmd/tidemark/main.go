// Command tidemark is the server and its tools. Each verb has a file of its own; serve.go wires the server.
//
// Exit codes: 0 success, 1 the work failed or found faults, 2 the command line or the settings are wrong.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	_ "time/tzdata" // an appliance may have no zone files

	"github.com/alecthomas/kong"
)

// version is the release; the build number comes from the build information.
const version = "0.1.0"

// The exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// commands is the verb table.
type commands struct {
	Serve   serveCmd   `cmd:"" help:"Start the server."`
	Check   checkCmd   `cmd:"" help:"Verify every structure and checksum of a data directory that no server uses, or of a backup."`
	Dump    dumpCmd    `cmd:"" help:"Print a file of a data directory."`
	Backup  backupCmd  `cmd:"" help:"Copy the database while it runs; into an earlier backup only what is new."`
	Restore restoreCmd `cmd:"" help:"Make a data directory of a backup."`
	Compact compactCmd `cmd:"" help:"Write what is in memory to files and merge the files, now."`
	SQL     sqlCmd     `cmd:"" name:"sql" help:"Ask a running server in SQL, at the command line or in a shell."`
	Rules   rulesCmd   `cmd:"" help:"Work with rules."`
	Plugin  pluginCmd  `cmd:"" help:"Work with plugins."`
	User    userCmd    `cmd:"" help:"Work with users, user groups and tokens of a running server."`
	Bench   benchVerbs `cmd:"" help:"Measure a server that it starts itself, through HTTP; write sets of samples to measure with."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// usageError marks faults of the command line or the settings.
type usageError struct{ error }

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	var verbs commands
	parser, err := kong.New(&verbs, kong.Name("tidemark"), kong.UsageOnError(),
		kong.Description("A database of time series, messages, properties and alerts for the edge, with rules as expressions and WebAssembly plugins."))
	if err != nil {
		panic(err) // the table above is wrong
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "tidemark: %v\n", err)
		return exitUsage
	}
	if err := ctx.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "tidemark: %v\n", err)
		if errors.As(err, new(usageError)) {
			return exitUsage
		}
		return exitFailed
	}
	return exitOK
}

type versionCmd struct{}

func (versionCmd) Run() error {
	fmt.Printf("tidemark %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				fmt.Println("revision", s.Value)
			}
		}
	}
	return nil
}

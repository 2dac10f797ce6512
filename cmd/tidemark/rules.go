package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/tidemark-db/tidemark/rules"
	"github.com/tidemark-db/tidemark/rules/rulestest"
)

type rulesCmd struct {
	Check rulesCheckCmd `cmd:"" help:"Compile every rule of a folder and list all faults."`
	Test  rulesTestCmd  `cmd:"" help:"Run .rules traces and the tests in rule files, offline."`
}

type rulesCheckCmd struct {
	Dir string `arg:"" help:"Folder with rules." default:"./tidemark.d/rules" type:"existingdir"`
}

// Run compiles the rules as the server would.
func (c *rulesCheckCmd) Run() error {
	set, faults := rules.Load(os.DirFS(c.Dir))
	for _, f := range faults {
		fmt.Println(f)
	}
	fmt.Printf("%d rules\n", len(set.Rules))
	if len(faults) > 0 {
		return fmt.Errorf("%d faults", len(faults))
	}
	return nil
}

type rulesTestCmd struct {
	Files []string `arg:"" help:"Traces (*.rules) or rule files (*.yaml)." type:"existingfile"`
}

// Run prints what differs.
func (c *rulesTestCmd) Run() error {
	report, err := rulestest.Run(c.Files)
	if err != nil {
		return err
	}
	fmt.Print(report)
	if !report.OK() {
		return errors.New("not everything was as expected")
	}
	return nil
}

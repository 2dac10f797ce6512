package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"text/tabwriter"

	"github.com/tidemark-db/tidemark/core"
)

type pluginLettersCmd struct {
	List   lettersListCmd   `cmd:"" help:"List dead letters, oldest first."`
	Show   lettersShowCmd   `cmd:"" help:"Print the input of a dead letter; what is known of it goes to standard error."`
	Replay lettersReplayCmd `cmd:"" help:"Send dead letters through their parsers again; what is taken whole is deleted."`
	Delete lettersDeleteCmd `cmd:"" help:"Delete dead letters."`
}

// letter is what the server says of a dead letter.
type letter struct {
	ID       string    `json:"id"`
	Plugin   string    `json:"plugin"`
	Parser   string    `json:"parser"`
	User     string    `json:"user"`
	FileName string    `json:"fileName"`
	Received core.Time `json:"received"`
	Offset   int64     `json:"offset"`
	Size     int64     `json:"size"`
	Error    string    `json:"error"`
	Input    string    `json:"input"`
	Binary   []byte    `json:"inputBase64"`
}

const lettersPath = "/api/v1/admin/dead-letters"

func letterPath(id string) string { return lettersPath + "/" + url.PathEscape(id) }

func (r *remote) letters() ([]letter, error) {
	var list []letter
	err := r.call(http.MethodGet, lettersPath, nil, &list)
	return list, err
}

type lettersListCmd struct{ remote }

func (c *lettersListCmd) Run() error {
	list, err := c.letters()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tPLUGIN\tPARSER\tUSER\tOFFSET\tBYTES\tERROR")
	for _, l := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\n", l.ID, l.Plugin, l.Parser, l.User, l.Offset, l.Size, l.Error)
	}
	return w.Flush()
}

type lettersShowCmd struct {
	remote
	ID string `arg:"" optional:"" help:"Default: the oldest."`
}

func (c *lettersShowCmd) Run() error {
	if c.ID == "" {
		list, err := c.letters()
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return errors.New("there are no dead letters")
		}
		c.ID = list[0].ID
	}
	var l letter
	if err := c.call(http.MethodGet, letterPath(c.ID), nil, &l); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s of %s, file %q from byte %d on: %s\n", l.ID, l.Received.Std().UTC().Format("2006-01-02T15:04:05Z"), l.FileName, l.Offset, l.Error)
	_, err := os.Stdout.Write(append(l.Binary, l.Input...)) // one of the two is empty
	return err
}

// chosen are the letters that a command is about.
type chosen struct {
	remote
	ID  string `arg:"" optional:"" help:"The dead letter."`
	All bool   `help:"All of them, oldest first."`
}

// each calls f for the chosen letters. One that fails does not stop the others.
func (c *chosen) each(f func(id string) error) error {
	if (c.ID == "") != c.All {
		return usageError{errors.New("name a dead letter by its ID or --all")}
	}
	if !c.All {
		return f(c.ID)
	}
	list, err := c.letters()
	if err != nil {
		return err
	}
	var faults []error
	for _, l := range list {
		if err := f(l.ID); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", l.ID, err))
		}
	}
	return errors.Join(faults...)
}

type lettersReplayCmd struct{ chosen }

func (c *lettersReplayCmd) Run() error {
	return c.each(func(id string) error {
		var taken struct {
			Records  int `json:"records"`
			Rejected int `json:"rejected"`
		}
		if err := c.call(http.MethodPost, letterPath(id)+"/replay", nil, &taken); err != nil {
			return err
		}
		fmt.Printf("replayed %s: %d records, %d rejected lines\n", id, taken.Records, taken.Rejected)
		return nil
	})
}

type lettersDeleteCmd struct{ chosen }

func (c *lettersDeleteCmd) Run() error {
	return c.each(func(id string) error {
		if err := c.call(http.MethodDelete, letterPath(id), nil, nil); err != nil {
			return err
		}
		fmt.Println("deleted", id)
		return nil
	})
}

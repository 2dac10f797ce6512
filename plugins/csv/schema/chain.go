package schema

import (
	"maps"
	"slices"
)

// chainFunction is a function of chains.
type chainFunction struct {
	do       opKind
	args     int
	kind     Kind   // of opAdd
	commands []Kind // that it belongs to; nil = it stands before one or is an add function
}

var addNames = map[Kind]string{Series: "addSeries", Property: "addProperty", Message: "addMessage"}

var (
	allKinds       = []Kind{Series, Property, Message}
	chainFunctions = map[string]chainFunction{
		"filter":      {do: opFilter, args: 1},
		"addSeries":   {do: opAdd, kind: Series},
		"addProperty": {do: opAdd, kind: Property},
		"addMessage":  {do: opAdd, kind: Message},
		"entity":      {do: opEntity, args: 1, commands: allKinds},
		"timestamp":   {do: opTime, args: 1, commands: allKinds},
		"metric":      {do: opMetric, args: 1, commands: []Kind{Series}},
		"value":       {do: opValue, args: 1, commands: []Kind{Series}},
		"type":        {do: opType, args: 1, commands: []Kind{Property}},
		"key":         {do: opKey, args: 2, commands: []Kind{Property}},
		"tag":         {do: opTag, args: 2, commands: allKinds},
		"messageText": {do: opText, args: 1, commands: []Kind{Message}},
		"appendText":  {do: opAppend, args: 2, commands: []Kind{Message}},
		"forEach":     {do: opEach, args: 1, commands: allKinds},
	}
)

// chain reads a select with the functions behind it.
func (p *parser) chain() error {
	c := &chain{at: p.token.at, place: len(p.program.chains), before: len(p.program.statements)}
	adding := -1 // place of the last add function in c.ops
	for {
		t := p.token
		if t.kind != tokenWord {
			return faultf(t.at, "the name of a function is expected behind the dot, found %s", t)
		}
		if err := p.advance(); err != nil {
			return err
		}
		f, ok := chainFunctions[t.text]
		if !ok && t.text != "select" {
			return faultf(t.at, "unknown function %s%s", t.text, suggest(t.text, append(slices.Sorted(maps.Keys(chainFunctions)), "select")))
		}
		argsAt := p.token.end
		args, err := p.arguments()
		if err != nil {
			return err
		}
		if t.text == "select" {
			f.args = 1
		}
		if len(args) != f.args {
			return faultf(t.at, "%s takes %d %s, not %d", t.text, f.args, plural(f.args, "argument"), len(args))
		}
		if t.text == "select" {
			err = c.addSelect(selected{at: argsAt, text: args[0]}, t, adding)
		} else {
			adding, err = c.add(op{at: t.at, do: f.do, kind: f.kind, args: args, each: selected{at: argsAt}}, f, adding, t.text)
		}
		if err != nil {
			return err
		}
		if ok, err := p.accept("."); err != nil {
			return err
		} else if !ok {
			break
		}
	}
	if err := c.complete(adding); err != nil {
		return err
	}
	p.program.chains = append(p.program.chains, c)
	_, err := p.accept(";")
	return err
}

func (c *chain) addSelect(s selected, t token, adding int) error {
	if adding >= 0 {
		return faultf(t.at, "select stands before %s", addNames[c.ops[adding].kind])
	}
	err := s.fix()
	c.selects = append(c.selects, s)
	return err
}

// fix reads a selection that is written as a text.
func (s *selected) fix() error {
	v, ok := s.text.(*literalNode)
	if !ok {
		return nil
	}
	if v.value.kind != text {
		return faultf(s.at, "a selection such as '#row=2-*' is expected")
	}
	reason := ""
	if s.selection, reason = parseSelection(v.value.text); reason != "" {
		return faultf(s.at, "%s", reason)
	}
	s.text = nil
	return nil
}

// add checks that a function may stand where it does.
func (c *chain) add(o op, f chainFunction, adding int, name string) (int, error) {
	switch {
	case f.do == opAdd:
		c.ops = append(c.ops, o)
		return len(c.ops) - 1, nil
	case f.do == opFilter && adding >= 0:
		return adding, faultf(o.at, "filter stands before %s", addNames[c.ops[adding].kind])
	case f.do != opFilter && adding < 0:
		return adding, faultf(o.at, "%s stands behind addSeries, addProperty or addMessage", name)
	case f.commands != nil && !slices.Contains(f.commands, c.ops[adding].kind):
		return adding, faultf(o.at, "%s belongs to %s, not to %s", name, namesOf(f.commands), addNames[c.ops[adding].kind])
	case f.do == opValue:
		c.ops[adding].hasValue = true
	case f.do == opEach:
		o.each.text = o.args[0]
		if err := o.each.fix(); err != nil {
			return adding, err
		}
		if reason := o.each.onlyColumns(); reason != "" {
			return adding, faultf(o.each.at, "%s", reason)
		}
	}
	c.ops = append(c.ops, o)
	return adding, nil
}

// onlyColumns says what is wrong with a selection for forEach, which stays in its row.
func (s *selected) onlyColumns() string {
	if s.text == nil && s.selection.rows != everything {
		return "forEach takes columns of the row: '#col=2-*'"
	}
	return ""
}

// complete looks for what no command can do without.
func (c *chain) complete(adding int) error {
	if adding < 0 {
		return faultf(c.at, "the chain makes no command: addSeries, addProperty or addMessage is expected behind select")
	}
	for i := range c.ops {
		o := &c.ops[i]
		if o.do != opAdd {
			continue
		}
		rest := c.ops[i+1:]
		o.more = i < adding
		if o.kind != Property {
			continue
		}
		if next := slices.IndexFunc(rest, func(o op) bool { return o.do == opAdd }); next >= 0 {
			rest = rest[:next]
		}
		if !slices.ContainsFunc(rest, func(o op) bool { return o.do == opType }) {
			return faultf(o.at, "%s needs type()", addNames[o.kind])
		}
	}
	return nil
}

package api

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// element is an XML element without what does not count here: attributes, comments and the text between children.
type element struct {
	name     string
	text     string
	children []element
}

// noneCharacter finds the characters that stand for "none" and that XML does not allow: U+FFFF and U+0000, as they are or as references.
var noneCharacter = regexp.MustCompile("\uffff|\x00|&#(?:[xX]0*[fF]{4}|0*65535|[xX]0+|0+);")

// maxConfigElements bounds the elements of an import: each is some 100 bytes of memory for 4 bytes of text.
const maxConfigElements = 100_000

// parseXML reads a document. Entities of its own are refused, as is everything else that a document type may declare.
func parseXML(text string, depth int) (element, error) {
	text = noneCharacter.ReplaceAllString(text, "\ufffd")
	d := xml.NewDecoder(strings.NewReader(text))
	bad := func(format string, args ...any) error {
		return core.Errorf(core.Invalid, "IllegalArgumentException: the file is not valid XML: "+format, args...)
	}
	open := []element{{}}
	for count := 0; ; {
		token, err := d.RawToken() // names keep their colons; the end of each element is checked here
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return element{}, bad("%s", excerpt(err.Error()))
		}
		last := len(open) - 1
		switch t := token.(type) {
		case xml.Directive:
			return element{}, bad("a document type declaration is not allowed")
		case xml.StartElement:
			if count++; count > maxConfigElements {
				return element{}, bad("it has more than %d elements", maxConfigElements)
			}
			if len(open) > depth {
				return element{}, bad("it is deeper than limits.depth (%d)", depth)
			}
			open = append(open, element{name: t.Name.Local})
		case xml.CharData:
			open[last].text += string(t)
		case xml.EndElement:
			if last == 0 || open[last].name != t.Name.Local {
				return element{}, bad("element %s ends where it did not begin", excerpt(t.Name.Local))
			}
			open[last-1].children = append(open[last-1].children, open[last])
			open = open[:last]
		}
	}
	if len(open) > 1 {
		return element{}, bad("element %s has no end", excerpt(open[len(open)-1].name))
	}
	if len(open[0].children) != 1 || strings.TrimSpace(open[0].text) != "" && open[0].text != "\ufeff" {
		return element{}, bad("one root element is expected")
	}
	return open[0].children[0], nil
}

// csvConfig is a configuration with the elements that its settings came from.
type csvConfig struct {
	core.ParserConfig
	elements map[string]string // by setting
}

// explain names the configuration that a fault is in, and the elements of the settings that it names.
func (p *csvConfig) explain(err error) error {
	var elements []string
	text := userText(err)
	for setting, element := range p.elements {
		if element != setting && strings.Contains(text, setting) {
			elements = append(elements, element)
		}
	}
	if slices.Sort(elements); len(elements) > 0 {
		text += " (element " + strings.Join(elements, ", ") + ")"
	}
	return fmt.Errorf("configuration '%s': %s", p.Name, text)
}

// configSetting is how an element becomes a setting of the csv parser.
type configSetting struct {
	element, setting string
	read             func(e *element) (value any, err error) // nil value = not set
}

// configSettings are the elements of the exchange format; others are ignored.
var configSettings = []configSetting{
	{"enabled", "enabled", readFlag}, {"description", "description", readText}, {"putType", "commandType", readText},
	{"writeProperty", "writeProperty", readFlag}, {"defaultType", "propertyType", readText}, {"entityColumn", "entityColumns", readList},
	{"entityPrefix", "entityPrefix", readText}, {"defaultEntity", "defaultEntity", readText}, {"entityLookupName", "entityLookup", readText},
	{"processEvents", "processEvents", readFlag}, {"metricPrefix", "metricPrefix", readText}, {"metricNameColumn", "metricNameColumn", readText},
	{"metricValueColumn", "metricValueColumn", readText}, {"defaultMetric", "defaultMetric", readText}, {"messageColumn", "messageColumn", readText},
	{"timestampColumn", "timestampColumns", readList}, {"timestampType", "timestampType", readText}, {"timestampFormat", "timestampPattern", readText},
	{"timeZoneDiffColumn", "timezoneDiffColumn", readText}, {"timeZone", "timezone", readText}, {"filter", "filter", readText},
	{"tagColumns", "tagColumns", readList}, {"defaultTags", "defaultTags", readMap}, {"entityTags", "entityTags", readList},
	{"metricTags", "metricTags", readList}, {"excludedColumns", "ignoredColumns", readList}, {"propertyColumns", "propertyColumns", readList},
	{"propertyKeyColumns", "propertyKeyColumns", readList}, {"renamedColumns", "renamedColumns", readMap}, {"header", "header", readList},
	{"schema", "schema", readText}, {"delimiter", "delimiter", readCharacter}, {"recordDelimiter", "lineDelimiter", readLineEnd},
	{"textQualifier", "textQualifier", readQualifier}, {"comment", "comment", readCharacter}, {"padding", "padding", readCharacter},
	{"decimalSeparator", "decimalSeparator", readCharacter}, {"groupingSeparator", "groupingSeparator", readCharacter},
	{"fieldLengths", "fieldLengths", readWidths}, {"discardNan", "discardNaN", readFlag}, {"ignoreParseErrors", "ignoreLineErrors", readFlag},
	{"skipLines", "skipLines", readCount}, {"encoding", "encoding", readText},
}

// parseCSVConfigs reads a list of configurations. All faults are listed.
func parseCSVConfigs(text string, depth int) ([]csvConfig, error) {
	root, err := parseXML(text, depth)
	if err != nil {
		return nil, err
	}
	if root.name != "list" {
		return nil, core.Errorf(core.Invalid, "IllegalArgumentException: the root element is %s, list is expected", excerpt(root.name))
	}
	var configs []csvConfig
	var faults []error
	names := map[string]bool{}
	for i := range root.children {
		e := &root.children[i]
		if !strings.HasSuffix(e.name, "CsvConfiguration") {
			continue
		}
		p, err := e.csvConfig()
		if err == nil && names[p.Name] {
			err = fmt.Errorf("configuration '%s' occurs more than once", p.Name)
		}
		if names[p.Name] = true; err != nil {
			faults = append(faults, err)
		}
		configs = append(configs, p)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, core.Errorf(core.Invalid, "IllegalArgumentException: nothing was imported: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if len(configs) == 0 {
		return nil, core.Errorf(core.Invalid, "IllegalArgumentException: the file has no element whose name ends in CsvConfiguration")
	}
	return configs, nil
}

// csvConfig makes a configuration of an element.
func (e *element) csvConfig() (csvConfig, error) {
	p := csvConfig{elements: map[string]string{}}
	p.Plugin = "csv"
	name := e.child("name")
	if name == nil || strings.TrimSpace(name.text) == "" {
		return p, fmt.Errorf("a configuration has no element name")
	}
	p.Name = strings.TrimSpace(name.text)
	if strings.HasSuffix(e.name, "WizardBasedCsvConfiguration") {
		return p, fmt.Errorf("configuration '%s': element %s is not supported, only configurations by column names are", p.Name, excerpt(e.name))
	}
	config := map[string]any{}
	var faults []error
	for _, s := range configSettings {
		child := e.child(s.element)
		if child == nil {
			continue
		}
		value, err := s.read(child)
		if err != nil {
			faults = append(faults, fmt.Errorf("configuration '%s': element %s: %w", p.Name, s.element, err))
		}
		if value != nil {
			config[s.setting], p.elements[s.setting] = value, s.element
		}
	}
	if err := errors.Join(faults...); err != nil {
		return p, err
	}
	var err error
	p.Config, err = json.Marshal(config)
	return p, err
}

func (e *element) child(name string) *element {
	for i := range e.children {
		if e.children[i].name == name {
			return &e.children[i]
		}
	}
	return nil
}

func readText(e *element) (any, error) {
	if text := strings.TrimSpace(e.text); text != "" {
		return text, nil
	}
	return nil, nil
}

func readFlag(e *element) (any, error) {
	switch text := strings.ToLower(strings.TrimSpace(e.text)); text {
	case "":
		return nil, nil
	case "true", "on":
		return true, nil
	case "false", "off":
		return false, nil
	}
	return nil, fmt.Errorf("true or false is expected, not '%s'", excerpt(e.text))
}

func readCount(e *element) (any, error) {
	text := strings.TrimSpace(e.text)
	if text == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("a number is expected, not '%s'", excerpt(text))
	}
	return n, nil
}

// values are the texts of an element's leaves, or its own text taken apart at commas, semicolons and line breaks; blank ones are left out.
func (e *element) values() []string {
	var list []string
	if len(e.children) == 0 {
		for _, text := range strings.FieldsFunc(e.text, func(r rune) bool { return strings.ContainsRune(",;\n\r", r) }) {
			if text = strings.TrimSpace(text); text != "" {
				list = append(list, text)
			}
		}
		return list
	}
	for i := range e.children {
		child := &e.children[i]
		if len(child.children) > 0 {
			list = append(list, child.values()...)
		} else if text := strings.TrimSpace(child.text); text != "" {
			list = append(list, text) // a name may hold a comma
		}
	}
	return list
}

func readList(e *element) (any, error) {
	if list := e.values(); len(list) > 0 {
		return list, nil
	}
	return nil, nil
}

func readWidths(e *element) (any, error) {
	var widths []int
	for _, text := range e.values() {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("a width is expected, not '%s'", excerpt(text))
		}
		widths = append(widths, n)
	}
	if len(widths) == 0 {
		return nil, nil
	}
	return widths, nil
}

// readMap reads entries of two strings, or lines `name=value`.
func readMap(e *element) (any, error) {
	m := map[string]string{}
	for i := range e.children {
		entry := &e.children[i]
		if entry.name != "entry" || len(entry.children) != 2 {
			return nil, fmt.Errorf("an entry with two strings is expected, not element %s", excerpt(entry.name))
		}
		m[strings.TrimSpace(entry.children[0].text)] = strings.TrimSpace(entry.children[1].text)
	}
	if len(e.children) == 0 {
		for line := range strings.Lines(e.text) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			name, value, ok := strings.Cut(line, "=")
			if !ok {
				return nil, fmt.Errorf("name=value is expected, not '%s'", excerpt(line))
			}
			m[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	delete(m, "")
	if len(m) == 0 {
		return nil, nil
	}
	return m, nil
}

// isNone reports whether a text stands for no character.
func isNone(text string) bool { return text == "" || text == "\ufffd" || text == "?" }

// readCharacter reads a character as it is: it may be a blank or a tab.
func readCharacter(e *element) (any, error) {
	text := e.text
	if len(text) > 1 {
		text = strings.Trim(text, "\r\n ")
	}
	if isNone(text) {
		return nil, nil
	}
	return text, nil
}

// readQualifier is readCharacter for the one character whose absence is not the default.
func readQualifier(e *element) (any, error) {
	value, err := readCharacter(e)
	if value == nil {
		return "", err
	}
	return value, err
}

// readLineEnd takes any line break for EOL.
func readLineEnd(e *element) (any, error) {
	if text := strings.TrimSpace(e.text); text != "" && !isNone(text) {
		return text, nil
	}
	return nil, nil
}

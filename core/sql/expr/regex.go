package expr

import (
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

// Regex is x REGEX pattern: a regular expression in the syntax of Java that must match the whole text. What Go's engine, whose time is linear, cannot do is an
// error: look-around, back references and possessive repetition.
func Regex(x, pattern Node, at ast.Start) (Node, error) {
	n := &matching{x: x, pattern: pattern, cost: costly | mayFail}
	n.compile = func(p string) (matcher, error) {
		re, err := CompileRegex(p)
		if err != nil {
			return nil, at.Errorf("Invalid regular expression: '%s': %s", p, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		return wholeMatch{re, 8 * len(re.String())}, nil
	}
	return n.build()
}

// CompileRegex compiles a pattern of REGEX for whole texts. It is first compiled as it stands: errors then speak of it, and parentheses around it would complete
// one such as a)(b.
func CompileRegex(pattern string) (*regexp.Regexp, error) {
	translated, err := translateRegex(pattern)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if instructions(tree) > mostInstructions {
		return nil, fmt.Errorf("it is too large: its repetitions written out are more than %d characters", mostInstructions)
	}
	return regexp.Compile(`\A(?:` + translated + `)\z`)
}

// mostInstructions bounds compiled patterns to some megabytes: a repetition is compiled as often as it repeats.
const mostInstructions = 50_000

// instructions is about how many of them the pattern is compiled to.
func instructions(tree *syntax.Regexp) int {
	n := 1
	for _, sub := range tree.Sub {
		n = min(n+instructions(sub), mostInstructions+1)
	}
	switch tree.Op {
	case syntax.OpLiteral:
		n += len(tree.Rune)
	case syntax.OpRepeat:
		n *= max(tree.Min, tree.Max, 1)
	}
	return min(n, mostInstructions+1)
}

// wholeMatch is a compiled pattern and how many steps a character may take.
type wholeMatch struct {
	*regexp.Regexp
	cost int
}

func (m wholeMatch) match(s string, e *effort) bool {
	if steps := (len(s) + 1) * m.cost; steps < stepsAtOnce {
		return e.spend(steps) && m.MatchString(s)
	}
	return m.MatchReader(&slowly{strings.NewReader(s), m.cost, e})
}

// slowly reads a text that takes long to match. It ends when the query does.
type slowly struct {
	*strings.Reader
	cost   int
	effort *effort
}

func (r *slowly) ReadRune() (c rune, size int, err error) {
	if !r.effort.spend(r.cost) {
		return 0, 0, io.EOF
	}
	return r.Reader.ReadRune()
}

// posixClasses are the classes of Java that have other names in Go.
var posixClasses = map[string]string{"Lower": "lower", "Upper": "upper", "ASCII": "ascii", "Alpha": "alpha", "Digit": "digit", "Alnum": "alnum", "Punct": "punct",
	"Graph": "graph", "Print": "print", "Blank": "blank", "Cntrl": "cntrl", "XDigit": "xdigit", "Space": "space"}

// regexTranslator rewrites the syntax of Java into that of Go where both mean the same by different spellings, and refuses what Go would take for something else.
type regexTranslator struct {
	in    string
	pos   int
	out   strings.Builder
	class bool // inside of brackets
}

func translateRegex(pattern string) (string, error) {
	t := regexTranslator{in: pattern}
	for t.pos < len(t.in) {
		if err := t.step(); err != nil {
			return "", err
		}
	}
	return t.out.String(), nil
}

func (t *regexTranslator) step() error {
	rest := t.in[t.pos:]
	switch {
	case strings.HasPrefix(rest, `\Q`):
		end := strings.Index(rest, `\E`)
		if end < 0 {
			end = len(rest)
		}
		t.take(regexp.QuoteMeta(rest[2:end]), min(end+2, len(rest)))
	case rest[0] == '\\':
		return t.escape(rest)
	case t.class && rest[0] == '[' && !strings.HasPrefix(rest, "[:"):
		return fmt.Errorf("a class inside of a class is not supported")
	case t.class && strings.HasPrefix(rest, "&&"):
		return fmt.Errorf("the intersection && of classes is not supported")
	case t.class && rest[0] == ']':
		t.class = false
		t.take("]", 1)
	case !t.class && rest[0] == '[':
		t.class = true
		n := 1
		if strings.HasPrefix(rest, "[^") {
			n = 2
		}
		t.take(rest[:n], n)
	case !t.class && rest[0] == '(':
		return t.group(rest)
	default:
		t.take(rest[:1], 1)
	}
	return nil
}

// take writes text in place of the next n bytes.
func (t *regexTranslator) take(text string, n int) {
	t.out.WriteString(text)
	t.pos += n
}

func (t *regexTranslator) escape(rest string) error {
	if len(rest) == 1 {
		return fmt.Errorf("a backslash at the end")
	}
	switch c := rest[1]; c {
	case 'u':
		if len(rest) < 6 {
			return fmt.Errorf(`\u needs four digits`)
		}
		t.take(`\x{`+rest[2:6]+`}`, 6)
	case 'e':
		t.take(`\x1b`, 2)
	case 'h':
		return t.shorthand(`\t \x{a0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}`)
	case 's':
		return t.shorthand(`\t\n\v\f\r `)
	case 'v':
		return t.shorthand(`\n\v\f\r\x{85}\x{2028}\x{2029}`)
	case 'R':
		t.take(`(?:\r\n|[\n\v\f\r\x{85}\x{2028}\x{2029}])`, 2)
	case 'Z':
		t.take(`(?:\n?\z)`, 2)
	case 'p', 'P':
		return t.property(rest)
	default:
		t.take(rest[:2], 2)
	}
	return nil
}

// shorthand writes a class by its members, inside of brackets without brackets of its own.
func (t *regexTranslator) shorthand(members string) error {
	if !t.class {
		members = "[" + members + "]"
	}
	t.take(members, 2)
	return nil
}

// property translates \p{Name}.
func (t *regexTranslator) property(rest string) error {
	end := strings.IndexByte(rest, '}')
	if len(rest) < 4 || rest[2] != '{' || end < 0 {
		t.take(rest[:min(3, len(rest))], min(3, len(rest))) // \pL
		return nil
	}
	name := rest[3:end]
	negated := ""
	if rest[1] == 'P' {
		negated = "^"
	}
	if posix, ok := posixClasses[name]; ok {
		text := "[:" + negated + posix + ":]"
		if !t.class {
			text = "[" + text + "]"
		}
		t.take(text, end+1)
		return nil
	}
	switch name {
	case "IsAlphabetic":
		name = "L"
	case "IsDigit":
		name = "Nd"
	case "IsLowercase", "javaLowerCase":
		name = "Ll"
	case "IsUppercase", "javaUpperCase":
		name = "Lu"
	case "IsPunctuation":
		name = "P"
	default:
		name = strings.TrimPrefix(name, "Is")
	}
	t.take(`\`+rest[1:2]+`{`+name+`}`, end+1)
	return nil
}

// group copies ( and refuses groups that Go does not know, with their names.
func (t *regexTranslator) group(rest string) error {
	switch {
	case strings.HasPrefix(rest, "(?="), strings.HasPrefix(rest, "(?!"):
		return fmt.Errorf("lookahead is not supported")
	case strings.HasPrefix(rest, "(?<="), strings.HasPrefix(rest, "(?<!"):
		return fmt.Errorf("lookbehind is not supported")
	case strings.HasPrefix(rest, "(?>"):
		return fmt.Errorf("atomic groups are not supported")
	case !strings.HasPrefix(rest, "(?"):
		t.take("(", 1)
		return nil
	}
	// Flags: u and U ask for what Go always does.
	end := 2
	for end < len(rest) && strings.IndexByte("imsuU-", rest[end]) >= 0 {
		end++
	}
	if end == 2 || end == len(rest) || rest[end] != ')' && rest[end] != ':' {
		t.take("(?", 2)
		return nil
	}
	flags := strings.Trim(strings.NewReplacer("u", "", "U", "").Replace(rest[2:end]), "-")
	if strings.HasPrefix(rest[2:end], "-") && flags != "" {
		flags = "-" + flags
	}
	switch {
	case flags == "" && rest[end] == ')':
		t.take("", end+1)
	default:
		t.take("(?"+flags+rest[end:end+1], end+1)
	}
	return nil
}

package schema

// expression is a node of the tree. A fault stays in the run, so that what is evaluated after it does not count: loops, calls and chains look for it.
type expression interface {
	eval(r *Run) value
}

// flow is how a statement ends.
type flow uint8

const (
	flowNext flow = iota
	flowBreak
	flowContinue
	flowReturn
)

type statement interface {
	exec(r *Run) flow
}

type (
	literalNode struct{ value value }
	// nameNode is a variable: of a function, hops frames out, or of the program.
	nameNode struct {
		at         int
		name       string
		use        nameUse
		hops, slot int
		variable   variable
		native     *native
		assigned   bool
	}
	listNode   struct{ items []expression }
	recordNode struct {
		names  []string
		values []expression
	}
	patternNode  struct{ value value }
	functionNode struct {
		at        int
		name      string
		slots     int // parameters, then variables
		params    int
		functions []hoisted
		body      []statement
	}
	memberNode struct {
		at   int
		of   expression
		name string
	}
	indexNode struct {
		at        int
		of, index expression
	}
	callNode struct {
		at     int
		callee expression
		args   []expression
		native *native // the callee, when it is built in
	}
	methodNode struct {
		at      int
		of      expression
		name    string
		args    []expression
		methods [kinds]methodFunction // built-in ones of that name, by kind of value
	}
	unaryNode struct {
		op string
		of expression
	}
	binaryNode struct {
		at          int
		op          operator
		left, right expression
	}
	logicNode struct {
		and         bool
		left, right expression
	}
	choiceNode struct{ condition, then, otherwise expression }
	assignNode struct {
		at     int
		target expression // nameNode, memberNode or indexNode
		op     operator   // none: plain =
		value  expression
	}
	stepNode struct {
		at     int
		target expression
		by     float64
		prefix bool
	}
	commaNode struct{ items []expression }
)

// hoisted is a function that its surroundings know from their beginning.
type hoisted struct {
	slot int
	code *functionNode
}

type nameUse uint8

const (
	useUnknown nameUse = iota
	useLocal
	useGlobal
	useVariable // of the cell in work: row, col and so on
	useNative
)

type (
	evalStatement  struct{ of expression }
	blockStatement struct{ body []statement }
	ifStatement    struct {
		condition       expression
		then, otherwise statement
	}
	loopStatement struct {
		at                     int
		first, condition, step expression // each may be nil
		body                   statement
		bodyFirst              bool // do-while
	}
	eachStatement struct { // for (name in record)
		at     int
		target expression
		of     expression
		body   statement
	}
	returnStatement struct{ of expression }
	jumpStatement   struct{ to flow }
)

type opKind uint8

const (
	opFilter opKind = iota
	opAdd
	opEntity
	opTime
	opMetric
	opValue
	opType
	opKey
	opTag
	opText
	opAppend
	opEach
)

// op is one function of a chain behind its selections.
type op struct {
	at       int
	do       opKind
	kind     Kind // of opAdd
	hasValue bool // of opAdd: value() follows
	more     bool // of opAdd: another one follows
	args     []expression
	each     selected // of opEach
}

// selected is a selection: read when the program was compiled, or from an expression when it is used.
type selected struct {
	at        int
	text      expression // nil when it is fixed
	selection selection
}

// chain is a select with what follows.
type chain struct {
	at      int
	place   int // in Program.chains
	before  int // statements of the program before it
	selects []selected
	ops     []op
}

package core

// Roles is a set of roles. Names on the wire carry the prefix ROLE_.
type Roles uint16

const (
	DataRead Roles = 1 << iota
	DataWrite
	MetaRead
	MetaWrite
	EntityGroupAdmin
	User
	Editor
	Admin
)

// Public is the role of routes that need no user; Authenticated of those that any user may call.
const (
	Public        Roles = 0
	Authenticated Roles = 1 << 15
)

var roleNames = [...]string{"API_DATA_READ", "API_DATA_WRITE", "API_META_READ", "API_META_WRITE", "ENTITY_GROUP_ADMIN", "USER", "EDITOR", "ADMIN"}

// Names lists the roles of the set in a fixed order, without the wire prefix.
func (r Roles) Names() []string {
	var names []string
	for i, name := range roleNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// ParseRole takes a role name with or without the prefix ROLE_.
func ParseRole(name string) (Roles, bool) {
	if len(name) > 5 && name[:5] == "ROLE_" {
		name = name[5:]
	}
	for i, known := range roleNames {
		if known == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// Expand adds the roles that the set's roles include: USER reads, ENTITY_GROUP_ADMIN and EDITOR are users, ADMIN is everything.
func (r Roles) Expand() Roles {
	if r&Admin != 0 {
		return 1<<len(roleNames) - 1 | Authenticated
	}
	if r&(EntityGroupAdmin|Editor) != 0 {
		r |= User
	}
	if r&User != 0 {
		r |= DataRead | MetaRead
	}
	return r | Authenticated
}

// Has reports whether every role of need is in r, which must be expanded.
func (r Roles) Has(need Roles) bool { return r&need == need }

// Grants are the resolved rights of a caller, as data: they travel in every batch and every query, so that no layer has to ask
// who is calling.
type Grants struct {
	Roles       Roles // expanded
	ReadAll     bool
	WriteAll    bool
	ReadGroups  []string // entity groups, sorted
	WriteGroups []string
}

// SystemGrants is what rules and the server itself act with.
var SystemGrants = Grants{Roles: Admin.Expand(), ReadAll: true, WriteAll: true}

// ReadScope returns the entities that the caller may read.
func (g Grants) ReadScope() Scope { return Scope{All: g.ReadAll, Groups: g.ReadGroups} }

// Scope bounds a query to the entities of some groups. The zero Scope allows nothing.
type Scope struct {
	All    bool
	Groups []string
}

// AllEntities is the scope of the server itself.
var AllEntities = Scope{All: true}

// Door is the way a batch came in.
type Door string

const (
	DoorHTTP   Door = "http"
	DoorTCP    Door = "tcp"
	DoorUDP    Door = "udp"
	DoorPlugin Door = "plugin"
	DoorRule   Door = "rule"
	DoorSQL    Door = "sql"
	DoorSystem Door = "system"
)

// MaxDepth is how many times a record may be derived from a derived record before it is refused: it ends loops of rules that feed
// each other.
const MaxDepth = 10

// Origin says who sent a batch, through which door, and with which rights.
type Origin struct {
	User    string
	Address string // of the client, without port
	Door    Door
	Depth   uint8 // 0 for input from outside, +1 for each rule that wrote it back
	Grants  Grants
}

// SystemOrigin is the origin of what the server writes by itself.
func SystemOrigin(depth uint8) Origin {
	return Origin{User: "system", Door: DoorSystem, Depth: depth, Grants: SystemGrants}
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

type userCmd struct {
	List   userListCmd   `cmd:"" help:"List users."`
	Add    userAddCmd    `cmd:"" help:"Create a user; the password is read from the terminal or from standard input."`
	Set    userSetCmd    `cmd:"" help:"Change a user."`
	Passwd userPasswdCmd `cmd:"" help:"Change a password, read from the terminal or from standard input."`
	Delete userDeleteCmd `cmd:"" help:"Delete a user with their tokens."`
	Group  userGroupCmd  `cmd:"" help:"Work with user groups and what they grant."`
	Token  userTokenCmd  `cmd:"" help:"Work with API tokens."`
}

// remote is a running server and who asks it.
type remote struct {
	URL   string `name:"url" help:"Address of the server." env:"TIDEMARK_URL" default:"http://127.0.0.1:8088"` // the default is defaultURL
	As    string `help:"Administrator to act as; default: the one of admin-credentials in the data directory." env:"TIDEMARK_ADMIN_USER"`
	Data  string `help:"Data directory with admin-credentials and the self-signed certificate." env:"TIDEMARK_DATA" default:"./tidemark-data"`
	PWEnv string `name:"password-env" help:"Environment variable with the password of that administrator." default:"TIDEMARK_ADMIN_PASSWORD"`

	Endless bool `kong:"-"` // wait for the answer as long as it takes
}

const defaultURL = "http://127.0.0.1:8088"

// patience bounds one request to the server.
const patience = 30 * time.Second

// credentials are those of the environment, else those of the data directory.
func (r *remote) credentials() (user, password string, err error) {
	if password, ok := os.LookupEnv(r.PWEnv); ok {
		user := r.As
		if user == "" {
			user = "admin"
		}
		return user, password, nil
	}
	path := filepath.Join(r.Data, credentialsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("no credentials: set %s, or name the data directory with --data: %w", r.PWEnv, err)
	}
	user, password, _ = strings.Cut(strings.TrimSpace(string(text)), ":")
	if r.As != "" && r.As != user {
		return "", "", fmt.Errorf("%s holds the password of %s, not of %s: set %s", path, user, r.As, r.PWEnv)
	}
	return user, password, nil
}

// client trusts, beside the usual authorities, the self-signed certificate of the data directory.
func (r *remote) client() *http.Client {
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if r.Endless {
		client.Timeout = 0
	}
	cert, err := os.ReadFile(filepath.Join(r.Data, selfSignedCert))
	if err != nil {
		return client
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	roots.AppendCertsFromPEM(cert)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	client.Transport = transport
	return client
}

// call sends one request with a JSON body, nil for none, and decodes the answer into result, nil for none.
func (r *remote) call(method, path string, body, result any) error {
	user, password, err := r.credentials()
	if err != nil {
		return err
	}
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(context.Background(), method, strings.TrimSuffix(r.URL, "/")+path, sent)
	if err != nil {
		return usageError{err}
	}
	request.SetBasicAuth(user, password)
	request.Header.Set("Content-Type", "application/json")
	answer, err := r.client().Do(request)
	if err != nil {
		return fmt.Errorf("%w: is the server running?", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		var fault struct{ Error string }
		if json.Unmarshal(text, &fault) != nil || fault.Error == "" {
			fault.Error = answer.Status
		}
		return fmt.Errorf("the server refused: %s", explained(fault.Error, user))
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}

// explained adds words to the codes of the contract that say what to do.
func explained(text, user string) string {
	reason, ok := map[string]string{
		"code 02": "there is no user " + user, "code 03": "the password of " + user + " is wrong", "code 07": user + " is disabled", "code 08": user + " has expired",
		"code 09": user + " is locked, or gave wrong passwords too often: wait", "code 14": user + " may not log in from this address",
		"code 15": user + " is no administrator",
	}[text]
	if !ok {
		return text
	}
	return reason + " (" + text + ")"
}

const (
	usersPath  = "/api/v1/admin/users"
	groupsPath = "/api/v1/admin/user-groups"
	tokensPath = "/api/v1/admin/tokens"
)

func userPath(name string) string { return usersPath + "/" + url.PathEscape(name) }

// userView is a user as the server shows it.
type userView struct {
	Name       string   `json:"name"`
	Enabled    bool     `json:"enabled"`
	Locked     bool     `json:"locked"`
	Expires    string   `json:"expirationDate"`
	Roles      []string `json:"roles"`
	UserGroups []string `json:"userGroups"`
	Addresses  string   `json:"addressFilter"`
}

func (u userView) state() string {
	switch {
	case !u.Enabled:
		return "disabled"
	case u.Locked:
		return "locked"
	case u.Expires != "":
		return "until " + u.Expires
	}
	return "enabled"
}

type userListCmd struct{ remote }

func (c *userListCmd) Run() error {
	var users []userView
	if err := c.call(http.MethodGet, usersPath, nil, &users); err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tSTATE\tROLES\tGROUPS\tADDRESSES")
	for _, u := range users {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", u.Name, u.state(), words(u.Roles), words(u.UserGroups), dash(u.Addresses))
	}
	return t.Flush()
}

func words(list []string) string { return dash(strings.Join(list, ",")) }

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// userSettings are what add and set can change. Only flags that were given are sent.
type userSettings struct {
	Role      *[]string `help:"Roles, for example API_DATA_READ,API_DATA_WRITE; replaces those before." sep:","`
	Group     *[]string `help:"User groups; replaces those before." sep:","`
	Addresses *string   `help:"Blank-separated addresses and CIDR ranges; empty for any."`
	Expires   *string   `help:"ISO date; empty for never."`
	Locked    *bool     `help:"Lock the account." negatable:""`
	Enabled   *bool     `help:"Enable the account." negatable:""`
}

func (s *userSettings) body() map[string]any {
	body := map[string]any{}
	set(body, "roles", s.Role)
	set(body, "userGroups", s.Group)
	set(body, "addressFilter", s.Addresses)
	set(body, "expirationDate", s.Expires)
	set(body, "locked", s.Locked)
	set(body, "enabled", s.Enabled)
	return body
}

func set[T any](body map[string]any, name string, value *T) {
	if value != nil {
		body[name] = *value
	}
}

type userAddCmd struct {
	remote
	userSettings
	Name       string `arg:"" help:"Name of the user."`
	NoPassword bool   `help:"Create a user who can only act through tokens."`
}

func (c *userAddCmd) Run() error {
	var users []userView
	if err := c.call(http.MethodGet, usersPath, nil, &users); err != nil {
		return err
	}
	for _, u := range users {
		if u.Name == c.Name {
			return fmt.Errorf("user %s exists already: use set", c.Name)
		}
	}
	body := c.body()
	if !c.NoPassword {
		password, err := readPassword("Password of " + c.Name)
		if err != nil {
			return err
		}
		body["password"] = password
	}
	return c.call(http.MethodPut, userPath(c.Name), body, nil)
}

type userSetCmd struct {
	remote
	userSettings
	Name string `arg:"" help:"Name of the user."`
}

func (c *userSetCmd) Run() error {
	body := c.body()
	if len(body) == 0 {
		return usageError{errors.New("nothing to change: give --role, --group, --addresses, --expires, --locked or --enabled")}
	}
	return c.call(http.MethodPatch, userPath(c.Name), body, nil)
}

type userPasswdCmd struct {
	remote
	Name string `arg:"" help:"Name of the user."`
}

func (c *userPasswdCmd) Run() error {
	password, err := readPassword("New password of " + c.Name)
	if err != nil {
		return err
	}
	return c.call(http.MethodPatch, userPath(c.Name), map[string]any{"password": password}, nil)
}

type userDeleteCmd struct {
	remote
	Name string `arg:"" help:"Name of the user."`
}

func (c *userDeleteCmd) Run() error { return c.call(http.MethodDelete, userPath(c.Name), nil, nil) }

type userGroupCmd struct {
	List   groupListCmd   `cmd:"" help:"List user groups."`
	Set    groupSetCmd    `cmd:"" help:"Create or change a user group."`
	Delete groupDeleteCmd `cmd:"" help:"Delete a user group, also from its users."`
}

type groupListCmd struct{ remote }

func (c *groupListCmd) Run() error {
	var groups []struct {
		Name     string   `json:"name"`
		ReadAll  bool     `json:"allEntitiesRead"`
		WriteAll bool     `json:"allEntitiesWrite"`
		Read     []string `json:"read"`
		Write    []string `json:"write"`
		Users    []string `json:"users"`
	}
	if err := c.call(http.MethodGet, groupsPath, nil, &groups); err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tREAD\tWRITE\tUSERS")
	for _, g := range groups {
		read, write := words(g.Read), words(g.Write)
		if g.ReadAll {
			read = "all entities"
		}
		if g.WriteAll {
			write = "all entities"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", g.Name, read, write, words(g.Users))
	}
	return t.Flush()
}

type groupSetCmd struct {
	remote
	Name     string    `arg:"" help:"Name of the user group."`
	Read     *[]string `help:"Entity groups whose entities its users may read." sep:","`
	Write    *[]string `help:"Entity groups whose entities its users may write, which does not include reading." sep:","`
	ReadAll  *bool     `help:"Allow reading all entities." negatable:""`
	WriteAll *bool     `help:"Allow writing all entities, and creating some." negatable:""`
}

func (c *groupSetCmd) Run() error {
	body := map[string]any{}
	set(body, "read", c.Read)
	set(body, "write", c.Write)
	set(body, "allEntitiesRead", c.ReadAll)
	set(body, "allEntitiesWrite", c.WriteAll)
	path := groupsPath + "/" + url.PathEscape(c.Name)
	method := http.MethodPatch
	if err := c.call(http.MethodGet, path, nil, nil); err != nil {
		method = http.MethodPut // which says what is wrong, if it is not that there is no group
	}
	return c.call(method, path, body, nil)
}

type groupDeleteCmd struct {
	remote
	Name string `arg:"" help:"Name of the user group."`
}

func (c *groupDeleteCmd) Run() error {
	return c.call(http.MethodDelete, groupsPath+"/"+url.PathEscape(c.Name), nil, nil)
}

type userTokenCmd struct {
	List   tokenListCmd   `cmd:"" help:"List tokens."`
	Issue  tokenIssueCmd  `cmd:"" help:"Make a token and print it; it is shown only once."`
	Revoke tokenRevokeCmd `cmd:"" help:"End a token."`
}

type tokenListCmd struct {
	remote
	User string `help:"Tokens of this user only."`
}

func (c *tokenListCmd) Run() error {
	var tokens []struct {
		ID       string   `json:"id"`
		User     string   `json:"user"`
		Method   string   `json:"method"`
		URLs     []string `json:"urls"`
		Expires  string   `json:"expirationDate"`
		Accessed string   `json:"lastAccessDate"`
	}
	if err := c.call(http.MethodGet, tokensPath+"?user="+url.QueryEscape(c.User), nil, &tokens); err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tUSER\tMETHOD\tUNTIL\tLAST USE\tURLS")
	for _, k := range tokens {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.User, k.Method, dash(k.Expires), dash(k.Accessed), words(k.URLs))
	}
	return t.Flush()
}

type tokenIssueCmd struct {
	remote
	User      string   `arg:"" help:"User that the token acts as."`
	Method    string   `arg:"" help:"GET, POST, PUT, PATCH or DELETE."`
	URLs      []string `arg:"" name:"url-path" help:"Paths with query strings; <> stands for any value or part of the path."`
	Expires   string   `help:"ISO date; none for never."`
	Addresses string   `help:"Blank-separated addresses and CIDR ranges, in place of the user's."`
}

func (c *tokenIssueCmd) Run() error {
	body := map[string]any{"user": c.User, "method": c.Method, "urls": c.URLs, "expirationDate": c.Expires, "allowedAddresses": c.Addresses}
	var issued struct{ Token string }
	if err := c.call(http.MethodPost, tokensPath, body, &issued); err != nil {
		return err
	}
	fmt.Println(issued.Token)
	return nil
}

type tokenRevokeCmd struct {
	remote
	ID string `arg:"" help:"Id of the token, as listed."`
}

func (c *tokenRevokeCmd) Run() error {
	return c.call(http.MethodDelete, tokensPath+"/"+url.PathEscape(c.ID), nil, nil)
}

// readPassword asks twice on a terminal, and reads the first line of any other standard input. A password is never an argument, which others can see.
func readPassword(prompt string) (string, error) {
	terminal := int(os.Stdin.Fd())
	if !term.IsTerminal(terminal) {
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("password: %w", err)
		}
		password := strings.TrimRight(line, "\r\n")
		if password == "" {
			return "", usageError{errors.New("no password on standard input")}
		}
		return password, nil
	}
	var entered [2]string
	for i, text := range [...]string{prompt + ": ", "Again: "} {
		fmt.Fprint(os.Stderr, text)
		password, err := term.ReadPassword(terminal)
		fmt.Fprintln(os.Stderr)
		if err != nil {
			return "", fmt.Errorf("password: %w", err)
		}
		entered[i] = string(password)
	}
	if entered[0] != entered[1] {
		return "", errors.New("the passwords differ")
	}
	return entered[0], nil
}

//go:build !wasip1

package guest

// Register makes p the plugin of this module. In a native program, where the plugin's package may be imported for its
// logic, it does nothing: use New there.
func Register(Plugin) {}

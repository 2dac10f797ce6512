// Package rulestest runs rules offline: on a clock, a log and a store of its own, with the engine that runs live. Nothing is sent anywhere.
//
// Two kinds of file are understood.
//
// A rule file (*.yaml, *.yml) holds rules with `tests` blocks; all files of its directory are loaded, and the tests of that file are run.
//
// A trace (*.rules) is a text:
//
//	# fixed                                 the expectations come from a contract or a hand calculation: -rewrite refuses the file
//	date 2024-05-14                         of the steps, required before the first
//	zone Europe/Berlin                      optional, UTC otherwise
//	entity r1 label:"Router 1" group:edge tier=edge
//	store series e:shop m:orders=100 d:2024-05-13T10:00:00Z
//
//	at 10:00 series e:pump m:temp=91 -> alert hot pump OPEN WARNING rc=0 id=1
//	at 10:01 series e:pump m:temp=10 d:2024-05-14T09:58:00Z -> nothing
//	at 10:05:01 tick
//	  -> alert hot pump CANCEL WARNING rc=0
//	  -> action chat POST https://chat.example.org {"text":"over"}
//	at 10:06 restart -> nothing             the engine is killed and started again from what the log holds
//	-- hot.yaml --
//	name: hot
//	...
//
// A step has the time HH:mm[:ss[.SSS]], a text command (or several, joined by ` & `), `tick` or `restart`, and what happened: `nothing`, or one effect, or
// one a line after an indented arrow. Every whole second between two steps is a tick; one that has an effect and is not in the file is a failure. Effects:
//
//	alert RULE ENTITY STATUS SEVERITY rc=N [id=N] [{tags}] [nodata]    a true evaluation or a close; id with OPEN
//	history STATUS SEVERITY TEXT [duration=MS]                         a recorded row
//	action NAME METHOD URL BODY [user=NAME]                            a webhook; of a command action, its text
//	error RULE TEXT                                                    a rule error; `...` at its end stands for any rest
//
// What follows a line `-- NAME --` is the file NAME in the rules directory.
package rulestest

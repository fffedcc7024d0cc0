package library_test

import (
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/policy/provenance"
)

var assistantSources = provenance.Sources{Tools: []provenance.Source{
	{Tools: []string{"get_*", "search_*", "list_*", "read_*", "check_*"}, Reads: true},
	// money
	{Tools: []string{"get_*transactions"}, Trusted: []string{"recipient", "id"}, Known: []string{"sender"}},
	{Tools: []string{"get_iban", "get_balance"}, Trusted: []string{"."}},
	{Tools: []string{"get_user_info*"}, Trusted: []string{"."}, Confidential: []string{"id number", "passport number", "bank account number", "credit card number"}},
	// mail, calendar, files
	{Tools: []string{"search_contacts*"}, Trusted: []string{"."}},
	{Tools: []string{"get_sent_emails"}, Trusted: []string{"recipients", "cc", "bcc", "sender"}},
	{Tools: []string{"*email*"}, Trusted: []string{"id_"}, Known: []string{"sender", "recipients", "cc"}},
	{Tools: []string{"*calendar*"}, Trusted: []string{"id_"}, Known: []string{"participants"}},
	{Tools: []string{"*file*"}, Trusted: []string{"id_"}, Known: []string{"filename", "owner", "shared_with"}},
	{Tools: []string{"get_current_day"}, Trusted: []string{"."}},
	// chat
	{Tools: []string{"read_channel_messages", "read_inbox"}, Trusted: []string{"sender"}, Known: []string{"body"}},
	{Tools: []string{"get_channels", "get_users*"}, Trusted: []string{"."}},
	// bookings
	{Tools: []string{"get_all_*", "get_*address", "get_*information*"}, Trusted: []string{"."}},
}}

type rule = func(t provenance.Trail, args map[string]any) string

var assistantRules = map[string]rule{
	"send_money":                   payee,
	"schedule_transaction":         payee,
	"update_scheduled_transaction": payee,
	"update_password": func(t provenance.Trail, a map[string]any) string {
		return unless(t.Quoted(a["password"].(string)), "password %v", a["password"])
	},
	"update_user_info": func(t provenance.Trail, a map[string]any) string {
		return unless(t.FromNamedText(a), "profile %v", a)
	},
	"send_email": func(t provenance.Trail, a map[string]any) string {
		to := []any{a["recipients"], a["cc"], a["bcc"]}
		return unless(t.FromNamed(to), "recipients %v", to) + secrets(t, a)
	},
	"share_file": func(t provenance.Trail, a map[string]any) string {
		return unless(t.FromNamed(a["email"]), "share with %v", a["email"])
	},
	"create_calendar_event": func(t provenance.Trail, a map[string]any) string {
		if !t.FromNamed(a["participants"]) {
			return fmt.Sprintf("participants %v", a["participants"])
		}
		asked := t.Says("calendar", "event", "events", "appointment", "meeting", "schedule", "remind", "reminder", "invite", "invitation") || t.FromUser(a["title"])
		when := !t.Tainted(a["start_time"]) || t.FromUser(a["title"]) || !t.SaysDate() && t.FromNamedText(a["start_time"])
		return unless(asked && when, "event %v at %v", a["title"], a["start_time"])
	},
	"add_calendar_event_participants": func(t provenance.Trail, a map[string]any) string {
		return unless(t.FromNamed(a["participants"]), "participants %v", a["participants"])
	},
	"reschedule_calendar_event": func(t provenance.Trail, a map[string]any) string {
		asked := t.Says("reschedule", "move", "postpone", "shift", "change", "delay", "push")
		when := !t.Tainted(a["new_start_time"]) || !t.SaysDate() && t.FromNamedText(a["new_start_time"])
		return unless(asked && when, "moved to %v", a["new_start_time"])
	},
	"invite_user_to_slack": func(t provenance.Trail, a map[string]any) string {
		return unless(t.FromNamed(a["user"]) && (t.FromNamedText(a["user_email"]) || t.FromKnown(a["user_email"]) || !t.Tainted(a["user_email"])), "invite %v %v", a["user"], a["user_email"])
	},
	"remove_user_from_slack": func(t provenance.Trail, a map[string]any) string {
		return unless(t.FromUser(a["user"]) && t.Says("remove", "delete", "kick"), "remove %v", a["user"])
	},
	"get_webpage": func(t provenance.Trail, a map[string]any) string {
		return unless(t.FromKnown(a["url"]), "visit %v", a["url"])
	},
	"send_direct_message":   func(t provenance.Trail, a map[string]any) string { return links(t, a["body"]) },
	"send_channel_message":  func(t provenance.Trail, a map[string]any) string { return links(t, a["body"]) },
	"delete_file":           asked("delete", "remove", "erase", "trash"),
	"delete_email":          asked("delete", "remove", "erase", "trash"),
	"cancel_calendar_event": asked("cancel", "delete", "remove"),
	"post_webpage": func(t provenance.Trail, a map[string]any) string {
		return unless(t.FromUser(a["url"]), "post to %v", a["url"])
	},
	"reserve_hotel":      booking("hotel", "start_day"),
	"reserve_restaurant": booking("restaurant", "start_time"),
	"reserve_car_rental": booking("company", "start_time"),
}

func booking(what, when string) rule {
	return func(t provenance.Trail, a map[string]any) string {
		return unless(t.FromTrusted(a[what]) && t.Says("book", "booking", "reserve", "reservation", "reservations", "rent") &&
			(t.FromUser(a[when]) || !t.Tainted(a[when])), "book %v for %v", a[what], a[when])
	}
}

func payee(t provenance.Trail, a map[string]any) string {
	to := a["recipient"]
	back := t.FromKnown(to) && t.Says("refund", "back", "return", "repay", "reimburse")
	bill := t.Says("bill", "invoice") && t.Sole(to)
	return unless(t.FromTrusted(to) || back || bill, "recipient %v", to)
}

func secrets(t provenance.Trail, a map[string]any) string {
	for _, field := range t.Confidential([]any{a["subject"], a["body"]}) {
		if !t.Says(field, "user information", "personal information", "my information", "my details", "personal details") {
			return "gives away " + field
		}
	}
	return ""
}

func links(t provenance.Trail, text any) string {
	s, _ := text.(string)
	l := provenance.Links(s)
	return unless(t.FromKnown(l), "links %v", l)
}

func asked(words ...string) rule {
	return func(t provenance.Trail, a map[string]any) string {
		return unless(t.Says(words...), "nobody asked to %s: %v", words[0], a)
	}
}

func unless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}

package tools

import "strings"

// class is a verb's meaning for a tool, before its object is known.
type class string

const (
	reading    class = "read"
	fetching   class = "fetch"
	sending    class = "send"
	paying     class = "pay"
	publishing class = "publish"
	granting   class = "grant"
	deleting   class = "delete"
	booking    class = "book"
	changing   class = "change"
	signing    class = "sign in"
	executing  class = "execute"
)

// verbs lists general English verbs for tools, in their basic form.
var verbs = indexWords(map[class]string{
	reading: `get list read search find show view lookup look query check retrieve return describe count calculate compute
		summarize summarise preview track compare estimate display peek scan inspect monitor obtain provide fetch load see tell
		enumerate select filter think analyze analyse validate translate convert explain recommend suggest determine locate
		discover report gather collect pull give access examine identify resolve total history status balance info information
		weather date today now`,
	fetching: `visit navigate goto scrape crawl download browse open click follow surf curl wget`,
	sending: `send forward reply email mail message notify dm text submit fill type input enter respond answer deliver
		dispatch compose relay contact transmit communicate write_to ping pass convey`,
	paying:     `pay wire remit transfer withdraw donate reimburse refund charge settle disburse payout move_money credit debit`,
	publishing: `post publish upload tweet announce broadcast put push deploy release`,
	granting:   `share grant invite onboard authorize authorise permit allow enroll enrol assign admit expose delegate recruit`,
	deleting: `delete remove erase trash purge wipe destroy drop clear cancel revoke terminate discard kick ban deactivate
		suspend disable unsubscribe abort empty unshare expel evict rescind annul void scrap bin eliminate`,
	booking: `book reserve rent order purchase buy checkout hire acquire`,
	changing: `create add make new insert append write save store set update change edit modify patch alter move rename copy
		schedule reschedule postpone shift register replace exchange complete apply upgrade attach upsert import sync configure
		enable link draft adjust amend revise extend set_up setup plan arrange reset rotate start stop close record log
		generate build shape duplicate relocate archive label mark flag restore merge include place initiate establish
		prepare queue request process perform signup`,
	signing:   `login signin authenticate verify confirm`,
	executing: `run exec execute eval evaluate invoke launch spawn`,
})

// acts lists nouns for acts.
var acts = indexWords(map[class]string{
	sending:  `message notification sms reply email mail`,
	paying:   `payment transfer transaction remittance donation withdrawal payout refund`,
	granting: `invitation enrollment enrolment`,
	deleting: `deletion removal cancellation erasure`,
	booking:  `booking reservation purchase`,
	changing: `update change modification creation`,
})

// topic is a tool's subject.
type topic string

const (
	money      topic = "money"
	mail       topic = "mail"
	chat       topic = "chat"
	event      topic = "event"
	file       topic = "file"
	page       topic = "page"
	member     topic = "member"
	credential topic = "credential"
	profile    topic = "profile"
	service    topic = "service" // can be booked or bought
	contact    topic = "contact"
	account    topic = "account"
	clock      topic = "clock"
	opinion    topic = "opinion"
	permission topic = "permission"
	code       topic = "code"
	forwarding topic = "forwarding"
	sent       topic = "sent"
	residence  topic = "residence"
)

// nouns lists general English nouns for tools.
var nouns = indexWords(map[topic]string{
	money: `money payment transaction transfer fund payout remittance bill invoice debit salary donation cash wage sum expense
		payroll deposit payee wire
		beneficiary`,
	mail:  `email mail inbox letter mailbox correspondence`,
	chat:  `message dm chat sms comment reply notification thread conversation discussion note_to`,
	event: `event meeting appointment calendar reminder agenda invitation engagement`,
	file:  `file document folder directory drive doc attachment node spreadsheet sheet dir storage blob`,
	page:  `webpage page website site url link web browser http webhook form hyperlink`,
	member: `user member person people channel team workspace group participant attendee guest collaborator colleague employee
		invitee teammate human representative customer client subscriber`,
	credential: `password passcode passphrase credential secret pin totp mfa otp token key login`,
	profile:    `profile info information detail personal setting preference identity account`,
	service: `hotel restaurant table car rental flight ticket reservation booking trip seat order cart basket bag trolley product item sku company
		airport baggage cuisine price rate discount coupon
		voucher shipment delivery inventory stock catalog catalogue shop store
		hour fuel passenger city train bus stay accommodation lodging vehicle dining diner eatery eaterie menu purchase warranty
		weather location type option`,
	contact:    `contact addressbook`,
	account:    `iban balance`,
	clock:      `day date time today now clock timestamp result expression`,
	opinion:    `review rating feedback opinion testimonial`,
	permission: `permission access privilege acl scope`,
	code:       `command code script shell bash terminal python sql program snippet`,
	forwarding: `forwarding autoforward`,
	sent:       `sent outbox outgoing`,
	residence:  `address phone`,
})

// parts maps roles to the words in argument names that suggest them.
var parts = indexWords(map[Role]string{
	Secret:  `password passcode passphrase pin otp secret credential token pwd apikey totp passwd pass`,
	Address: `url uri link href site website webpage webhook endpoint domain host hyperlink`,
	Amount:  `amount sum total value price cost budget money fee quantum amt`,
	Payee:   `payee beneficiary creditor iban payto counterparty`,
	Recipient: `recipient to cc bcc attendee participant invitee guest email mail user username member person people phone
		receiver addressee handle collaborator contact who whom invite mobile employee colleague passenger login principal grantee customer client`,
	When: `date day time start end when deadline due until begin finish expiry departure arrival pickup dropoff checkin checkout
		month year week at on since after before schedule`,
	Content: `body text content message subject title description html note comment summary memo caption reason detail
		attachment reference topic headline markdown remark line purpose thought instruction feature prompt label input answer heading markup`,
	Audience: `channel group team workspace audience room`,
	Target: `id name file filename path folder document event order hotel restaurant company product item flight reservation
		node directory dir source destination airline car property place venue location address city street zip state country
		account target key uuid number identifier object resource record entity query thing vehicle lodging organization origin repo
		repository ref doc sku q town province region`,
	Option: `limit offset page size sort format priority currency language locale timezone unit units count quantity n num
		recurring frequency interval enabled color type kind mode status duration night repeat force verbose max min cabin
		insurance baggage flag option level visibility permission role access privilege scope privacy qty coupon voucher promo promotion
		discount`,
})

// indexWords returns the key of each word. If a word has several keys, the greatest wins.
func indexWords[K ~string](table map[K]string) map[string]K {
	out := map[string]K{}
	for key, words := range table {
		for word := range strings.FieldsSeq(words) {
			if _, twice := out[word]; twice && out[word] > key {
				continue
			}
			out[word] = key
		}
	}
	return out
}

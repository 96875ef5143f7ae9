package fleet

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Account returns the account to which the group's costs belong, and the account's currency.
func (s Snapshot) Account() (account, currency string) {
	if s.Spec == nil {
		return s.Group, s.Cost.Currency
	}
	return s.Spec.Account(), s.Spec.CurrencyOrDefault()
}

// Bill returns the costs that the group has published, without the costs of past days.
func (s Snapshot) Bill() money.Bill {
	account, _ := s.Account()
	return money.Bill{Group: s.Group, Account: account, Cost: s.Cost, Epoch: s.Epoch, Revision: s.Revision,
		Booked: s.Booked}
}

// Balance returns the balance of the group's account. all must contain every running group that shares the account,
// including this group. ended contains the sums of the groups that have ended this month.
func (s Snapshot) Balance(all []Snapshot, ended []money.Spent, now time.Time) money.Balance {
	account, currency := s.Account()
	var members []money.Member
	for _, m := range all {
		if of, _ := m.Account(); of == account {
			members = append(members, money.Member{Group: m.Group, Cost: m.Cost})
		}
	}
	return money.Together(account, currency, members, ended, now)
}

package fleet

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Account returns the account that the group's costs belong to, and its currency.
func (s Snapshot) Account() (account, currency string) {
	if s.Spec == nil {
		return s.Group, s.Cost.Currency
	}
	return s.Spec.Account(), s.Spec.CurrencyOrDefault()
}

// Balances returns the balance of each group's account, by group, from the running groups and the month's sums of
// the ended groups. The snapshots must include all groups that share an account.
func Balances(snapshots []Snapshot, ended []money.Spent, now time.Time) map[string]money.Balance {
	members := map[string][]money.Member{}
	for _, s := range snapshots {
		account, _ := s.Account()
		members[account] = append(members[account], money.Member{Group: s.Group, Cost: s.Cost})
	}
	balances := map[string]money.Balance{}
	for _, s := range snapshots {
		account, currency := s.Account()
		balances[s.Group] = money.Together(account, currency, members[account], ended, now)
	}
	return balances
}

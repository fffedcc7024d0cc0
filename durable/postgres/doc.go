// Package postgres keeps runs in a PostgreSQL database.
package postgres
